"""The base of every configuration spec: frozen, complete, and closed to unknown keys."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from specsim.errors import ConfigError, Fault


class Spec(BaseModel):
    """A frozen spec that refuses unknown keys, NaN and infinities."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe each field by the docstring below it.

        Read only here: pydantic's ``use_attribute_docstrings`` parses the source of every spec at import,
        a quarter of what a small run costs.
        """
        schema = handler(core_schema)
        fields = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in _field_docstrings(cls).items():
            if name in fields:
                fields[name].setdefault("description", text)
        return schema


def _field_docstrings(spec: type[Spec]) -> dict[str, str]:
    """Docstrings of a spec's fields, those of its bases included."""
    found: dict[str, str] = {}
    for base in reversed(spec.__mro__):
        if issubclass(base, Spec):
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
            assert isinstance(definition, ast.ClassDef)
            for field, below in pairwise(definition.body):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        found[name] = inspect.cleandoc(text)
    return found


def refuse(faults: Sequence[tuple[str, str]]) -> None:
    """Raise the faults that a check across fields found, from inside a pydantic validator.

    Parameters
    ----------
    faults
        Dotted path below the spec that is being validated, and what is wrong there.
        Nothing happens if there are none.
    """
    if faults:
        raise ConfigError([Fault("", None, None, path, message) for path, message in faults])
