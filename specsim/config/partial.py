"""What of a faulty document is right all the same: the checks across fields that it still allows.

Pydantic makes these checks only where every field is right, and stops at the first that fails. Here each is
made by itself, on the fields that are right; one that reads a field at fault says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from specsim.config.nodes import Items, Node, Scalar, Step, Table, child, plain
from specsim.errors import ConfigError, Fault

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Found:
    """A fault across fields, and the mapping that it was found in."""

    fault: Fault
    node: Node
    steps: tuple[Step, ...]


def faults_across(spec_type: type[BaseModel], table: Table) -> list[Found]:
    """Return the faults of all checks across fields that what is right of a mapping allows.

    Parameters
    ----------
    spec_type
        The spec that the mapping should be.
    table
        The mapping, at fault somewhere.
    """
    found: list[Found] = []
    _partial(spec_type, table, (), found)
    return found


def models_in(annotation: object) -> list[type[BaseModel]]:
    """Return the specs that stand in an annotation, those of a union or a collection as well."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def _partial(spec_type: type[S], table: Table, steps: tuple[Step, ...], found: list[Found]) -> S:
    """Return a spec with the fields that are right and no others, checked as far as they go."""
    values: dict[str, object] = {}
    for name, field in spec_type.model_fields.items():
        key = field.alias or name
        node = child(table, key)
        if node is not None:
            for value in _values(field, node, (*steps, key), found):
                values[name] = value
        elif not field.is_required():
            values[name] = field.get_default(call_default_factory=True)
    spec = spec_type.__new__(spec_type)
    attributes = {
        "__dict__": values,
        "__pydantic_fields_set__": set(values),
        "__pydantic_extra__": None,
        "__pydantic_private__": None,
    }
    for name, value in attributes.items():
        object.__setattr__(spec, name, value)
    for check in spec_type.__pydantic_decorators__.model_validators.values():
        found += [Found(fault, table, steps) for fault in _faults(check.func, spec)]
    return spec


def _values(field: FieldInfo, node: Node, steps: tuple[Step, ...], found: list[Found]) -> Iterator[object]:
    """Yield the value of a field, with what is right of the specs in it; nothing where it is no spec."""
    annotation: Any = Annotated[field.annotation, field]
    try:
        yield TypeAdapter(annotation).validate_python(plain(node))
    except ValidationError:
        if isinstance(node, Table) and (model := _model(field, node)):
            yield _partial(model, node, steps, found)
        elif isinstance(node, Items):
            items = [(number, item, _model(field, item)) for number, item in enumerate(node.items)]
            parts = [
                _partial(model, item, (*steps, number), found)
                for number, item, model in items
                if model is not None and isinstance(item, Table)
            ]
            if len(parts) == len(items):
                yield tuple(parts)


def _model(field: FieldInfo, node: Node) -> type[BaseModel] | None:
    """Return the spec that a mapping is meant as, if that is told and it takes the mapping as it stands."""
    models = models_in(field.annotation)
    if len(models) > 1:
        kind = child(node, "kind")
        given = kind.value if isinstance(kind, Scalar) else None
        models = [
            model
            for model in models
            if "kind" in model.model_fields and given in get_args(model.model_fields["kind"].annotation)
        ]
    if len(models) != 1:
        return None
    checks = models[0].__pydantic_decorators__.model_validators.values()
    return models[0] if all(check.info.mode == "after" for check in checks) else None


def _faults(check: Any, spec: BaseModel) -> tuple[Fault, ...]:
    try:
        check(spec)
    except ConfigError as error:
        return error.faults
    except ValidationError:
        return ()
    except ValueError as error:
        return (Fault("", None, None, "", str(error)),)
    except Exception:
        # It asked for a field that is not there, or for what another fault has made nonsense.
        return ()
    return ()
