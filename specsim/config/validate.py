"""Documents into specs: every fault as one line that says where, what was given and what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from specsim.config.nodes import (
    Document,
    Items,
    Node,
    Scalar,
    Step,
    Table,
    child,
    dotted,
    shortened,
    shown_key,
)
from specsim.config.partial import faults_across, models_in
from specsim.errors import ConfigError, Fault

S = TypeVar("S", bound=BaseModel)

_QUOTED_NUMBER = re.compile(r"[-+.0-9eE_ ]+")
_MOST_PLACES = 3
"""Most places that a misplaced key is looked for in a message."""
_ALIKE = 0.8
"""Likeness of two names, 0 to 1, above which a key in another place may have been meant."""
_PARSING_TYPES = ("_type", "_parsing", "_from_float", "literal_error", "enum")


def validate(spec_type: type[S], document: Document) -> S:
    """Return the spec that a document describes.

    Raises
    ------
    ConfigError
        All faults of the document, sorted by file and line.
    """
    try:
        spec = spec_type.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(explain(error, spec_type, document)) from None
    coerced = list(_coerced(document.root, spec, ()))
    if coerced:
        raise ConfigError(sort_faults(coerced))
    return spec


def explain(error: ValidationError, spec_type: type[BaseModel], document: Document) -> list[Fault]:
    """Return the faults behind a validation error of a document, sorted by file and line."""
    found = [_locate(details, document.root) for details in error.errors(include_url=False)]
    faults = {fault for group in _by_field(found) for fault in _faults(group, spec_type)}
    told = {fault.path for fault in faults}
    across = [_placed(one.fault, one.node, one.steps) for one in faults_across(spec_type, document.root)]
    return sort_faults(faults | {fault for fault in across if fault.path not in told})


def sort_faults(faults: Iterable[Fault]) -> list[Fault]:
    """Return faults in the order of their files and lines; those of flags come after those of files."""
    return sorted(
        faults, key=lambda f: (f.line is None, f.file, f.line or 0, f.column or 0, f.path, f.message)
    )


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the word most like a mistyped one, or None where none is near."""
    candidates = list(words)
    near = difflib.get_close_matches(word, candidates, n=1) or difflib.get_close_matches(
        word.lower(), [candidate.lower() for candidate in candidates], n=1
    )
    return next(
        (candidate for candidate in candidates if near and candidate.lower() == near[0].lower()), None
    )


@dataclass(frozen=True, slots=True)
class _Located:
    """One error of pydantic with its steps through the document, the branches of unions taken out."""

    details: ErrorDetails
    steps: tuple[Step, ...]
    node: Node
    """The node at the steps, or the deepest one on the way."""
    parent: Node
    branch: Step | None
    """Which alternative of a plain union the error belongs to, if any."""
    branch_depth: int


def _locate(details: ErrorDetails, root: Table) -> _Located:
    """Follow the location of an error through the document.

    Pydantic puts the tag or the name of a union's alternative between the keys. The document tells
    them from keys: an alternative is not a key of the mapping that it is said to stand in.
    """
    node: Node = root
    parent: Node = root
    steps: list[Step] = []
    branch, branch_depth = None, 0
    location = details["loc"]
    last = len(location) - 1
    for number, step in enumerate(location):
        below = None if _is_tag(step, node, location[number + 1 :]) else child(node, step)
        if below is not None:
            parent, node = node, below
            steps.append(step)
        elif number == last and details["type"] == "missing":
            parent = node
            steps.append(step)
        elif step == "[key]" or _is_tag(step, node, ()):
            continue
        elif branch is None:
            branch, branch_depth = step, len(steps)
    return _Located(details, tuple(steps), node, parent, branch, branch_depth)


def _is_tag(step: Step, node: Node, rest: Sequence[Step]) -> bool:
    """Tell whether a step is the tag of a discriminated union and not a key of the same name."""
    kind = child(node, "kind") if isinstance(node, Table) else None
    if not isinstance(kind, Scalar) or kind.value != step:
        return False
    inside = child(node, step)
    return inside is None or not rest or child(inside, rest[0]) is None


def _by_field(found: Sequence[_Located]) -> Iterator[list[_Located]]:
    """Group the alternatives of one union; of those, keep the ones that come closest to what was given."""
    groups: dict[tuple[Step, ...], list[_Located]] = {}
    for located in found:
        if located.branch is None:
            yield [located]
        else:
            groups.setdefault(located.steps[: located.branch_depth], []).append(located)
    for prefix, group in groups.items():
        # A mapping was given: what is wrong inside it says more than that it is not a string.
        inside = [one for one in group if not _is_of_wrong_type(one) or len(one.steps) > len(prefix)]
        if inside:
            yield from ([one] for one in inside)
        else:
            yield group


def _is_of_wrong_type(located: _Located) -> bool:
    return located.details["type"].endswith(_PARSING_TYPES)


def _faults(group: Sequence[_Located], spec_type: type[BaseModel]) -> list[Fault]:
    first = group[0]
    raised = _raised_faults(first.details)
    if raised:
        return [_placed(fault, first.node, first.steps) for fault in raised]
    if len(group) == 1:
        return [_fault(first, spec_type)]
    allowed = list(dict.fromkeys(_allowed(one.details) for one in group))
    message = f"{_given(first.node)} is not allowed; expected {' or '.join(allowed)}"
    return [first.node.place.fault(dotted(first.steps), message)]


def _raised_faults(details: ErrorDetails) -> tuple[Fault, ...]:
    """Return the faults that a validator raised in one go."""
    cause = details.get("ctx", {}).get("error")
    return cause.faults if isinstance(cause, ConfigError) else ()


def _placed(fault: Fault, node: Node, above: Sequence[Step]) -> Fault:
    """Return a fault of another file as it is, and one of this document with its place."""
    if fault.file:
        return fault
    steps = tuple(step for step in fault.path.split(".") if step)
    place = node.place
    for step in steps:
        entry = node.entries.get(step) if isinstance(node, Table) else None
        below = child(node, step)
        if below is not None:
            # Where a file was named, the name is at fault and not what the file begins with.
            is_named = entry is not None and entry.key_place.file != below.place.file
            node, place = below, entry.key_place if entry is not None and is_named else below.place
    return place.fault(dotted((*above, *steps)), fault.message)


def _fault(located: _Located, spec_type: type[BaseModel]) -> Fault:
    details, steps, node = located.details, located.steps, located.node
    kind = details["type"]
    if kind == "missing":
        return node.place.fault(dotted(steps), "missing; it has no default")
    if kind == "extra_forbidden":
        return _unknown_key(located, spec_type)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _unknown_kind(located, spec_type)
    if details["loc"][-1:] == ("[key]",):
        return _wrong_key(located)
    return node.place.fault(dotted(steps), _message(details, node))


def _wrong_key(located: _Located) -> Fault:
    """Return the fault of a free key, such as the metric of an objective, that is not of its form."""
    key, parent = str(located.steps[-1]), located.parent
    entry = parent.entries.get(key) if isinstance(parent, Table) else None
    place = entry.key_place if entry is not None else located.node.place
    if located.details["type"] == "value_error":
        return place.fault(dotted(located.steps), _message(located.details, located.node))
    what = _allowed(located.details).replace("String should match", "a key that matches")
    return place.fault(dotted(located.steps), f"the key {shown_key(key)} is not allowed; expected {what}")


def _unknown_key(located: _Located, spec_type: type[BaseModel]) -> Fault:
    key = str(located.steps[-1])
    parent = located.parent
    allowed = _keys(_models_at(spec_type, located.steps[:-1]), parent)
    given = set(parent.entries) if isinstance(parent, Table) else set()
    near = nearest(key, [name for name in allowed if name not in given]) or nearest(key, allowed)
    meant = _elsewhere(key, spec_type, near) or ([near] if near else [])
    alike = " or ".join(f"'{name}'" for name in meant)
    hint = f"did you mean {alike}?" if meant else f"allowed: {', '.join(allowed)}"
    entry = parent.entries.get(key) if isinstance(parent, Table) else None
    place = entry.key_place if entry is not None else located.node.place
    return place.fault(dotted(located.steps), f"unknown key ({hint})" if allowed else "unknown key")


def _elsewhere(key: str, spec_type: type[BaseModel], near: str | None) -> list[str]:
    """Return the dotted paths of a key that stands in the wrong place, where none beside it is more alike."""
    paths: dict[str, list[str]] = {}
    for path in dict.fromkeys(_paths(spec_type)):
        paths.setdefault(path.rpartition(".")[2], []).append(path)
    found = nearest(key, paths)
    if found is None or _likeness(key, found) <= max(_ALIKE, _likeness(key, near or "")):
        return []
    return sorted(paths[found], key=lambda path: path.count("."))[:_MOST_PLACES]


def _likeness(word: str, other: str) -> float:
    return difflib.SequenceMatcher(None, word, other).ratio()


def _paths(spec_type: type[BaseModel], under: str = "") -> Iterator[str]:
    """Yield the dotted path of every field of a spec and of those below it, but for items of lists."""
    for name, annotation in _fields(spec_type).items():
        yield f"{under}{name}"
        if get_origin(annotation) not in (list, tuple, dict, Mapping):
            for model in models_in(annotation):
                yield from _paths(model, f"{under}{name}.")


def _unknown_kind(located: _Located, spec_type: type[BaseModel]) -> Fault:
    discriminator = str(located.details.get("ctx", {}).get("discriminator", "")).strip("'")
    models = _models_at(spec_type, located.steps)
    kinds = sorted({str(k) for model in models for k in get_args(_fields(model).get(discriminator))})
    path = dotted((*located.steps, discriminator))
    node = child(located.node, discriminator)
    if node is None:
        return located.node.place.fault(path, f"missing; allowed: {', '.join(kinds)}")
    return node.place.fault(path, _not_one_of(node, kinds))


def _not_one_of(node: Node, words: Sequence[str]) -> str:
    near = nearest(node.value, words) if isinstance(node, Scalar) and isinstance(node.value, str) else None
    hint = f"did you mean '{near}'? " if near else ""
    return f"{_given(node)} is not allowed ({hint}allowed: {', '.join(words)})"


def _message(details: ErrorDetails, node: Node) -> str:
    """Return what was given and what is allowed."""
    kind, text, context = details["type"], details["msg"], details.get("ctx", {})
    if kind in ("value_error", "assertion_error"):
        return text.partition(", ")[2]
    if not text.startswith("Input should"):
        # Such as "String should have at least 1 character".
        _, should, rule = text.partition(" should ")
        return f"{_given(node)} is not allowed; it should {rule}" if should else text
    if kind == "literal_error":
        return _not_one_of(node, _words(str(context.get("expected", ""))))
    return f"{_given(node)} is not allowed; expected {_allowed(details)}"


def _words(expected: str) -> list[str]:
    return [word.strip(" '") for word in expected.replace(" or ", ", ").split(",") if word.strip(" '")]


def _allowed(details: ErrorDetails) -> str:
    """Return what would have been right, as a phrase after "expected"."""
    kind, text = details["type"], details["msg"]
    if kind in ("model_type", "model_attributes_type", "dict_type", "dataclass_type"):
        return "a mapping"
    if kind in ("list_type", "tuple_type", "set_type", "frozen_set_type"):
        return "a list"
    return text.removeprefix("Input should ").removeprefix("be ").partition(", unable")[0]


def _given(node: Node) -> str:
    if isinstance(node, Scalar):
        value = node.value
        shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
        return shortened(shown)
    return "a mapping" if isinstance(node, Table) else "a list"


def _coerced(node: Node, value: object, steps: tuple[Step, ...]) -> Iterator[Fault]:
    """Find what pydantic has read as something else: booleans and strings as numbers, either as booleans."""
    if isinstance(node, Scalar):
        if isinstance(value, bool) and not isinstance(node.value, bool):
            yield node.place.fault(dotted(steps), f"{_given(node)} is not allowed; expected true or false")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and isinstance(node.value, bool):
            yield node.place.fault(dotted(steps), f"{_given(node)} is not allowed; expected a number")
        if is_number and isinstance(node.value, str) and _QUOTED_NUMBER.fullmatch(node.value):
            yield node.place.fault(
                dotted(steps), f"{_given(node)} is a string; write the number without quotes"
            )
    elif isinstance(node, Items) and isinstance(value, (list, tuple)) and len(value) == len(node.items):
        for index, item in enumerate(node.items):
            yield from _coerced(item, value[index], (*steps, index))
    elif isinstance(node, Table):
        for key, entry in node.entries.items():
            below = value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)
            yield from _coerced(entry.node, below, (*steps, key))


def _models_at(spec_type: type[BaseModel], steps: Sequence[Step]) -> list[type[BaseModel]]:
    """Return the specs that a mapping at these steps may be read as."""
    models = [spec_type]
    for step in steps:
        fields = [_fields(model).get(str(step)) for model in models]
        if any(field is not None for field in fields):
            models = [model for field in fields for model in models_in(field)]
        # Otherwise the step is an index or a free key of a collection, whose specs are among these already.
    return models


def _fields(model: type[BaseModel]) -> Mapping[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _keys(models: Sequence[type[BaseModel]], node: Node) -> list[str]:
    """Return the keys that the specs allow, of those whose ``kind`` is the one given if any is."""
    kind = child(node, "kind") if isinstance(node, Table) else None
    given = kind.value if isinstance(kind, Scalar) else None
    chosen = [model for model in models if given in get_args(_fields(model).get("kind"))] or models
    return sorted({shown_key(name) for model in chosen for name in _fields(model)})
