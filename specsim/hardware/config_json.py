"""Reading a ``config.json``: spellings, nesting, left-out and mistyped keys.

A ``config.json`` holds many keys that say nothing about speed, so unknown ones are ignored. One that
resembles a key that is left out is taken for a slip and refused: ``num_key_value_head: 8`` would
otherwise quietly mean as many key-value heads as query heads.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from specsim.hardware.architectures import ARCHITECTURES, Architecture

NESTED_KEY = "text_config"
"""Where multimodal configs keep their language model."""

_OUTER_KEYS = ("name", "source", "recorded", "_name_or_path", "tie_word_embeddings", "expert_correlation")
_SPELLINGS = {
    "_name_or_path": "name",
    "num_local_experts": "num_experts",
    "n_routed_experts": "num_experts",
    "_sliding_window_pattern": "sliding_window_pattern",
}
_ENCODER_DECODER_SPELLINGS = {
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "d_kv": "head_dim",
    "num_heads": "num_attention_heads",
    "num_layers": "num_encoder_layers",
    "num_decoder_layers": "num_hidden_layers",
}
_RESEMBLANCE = 0.75
# Keys of real configs that resemble one of ours and mean something else.
_NO_SLIPS = frozenset(
    {"qk_head_dim", "original_max_position_embeddings", "position_embedding_type", "experts_per_token"}
)


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    """A config under our field names, and what is wrong with it."""

    fields: dict[str, object]
    """Values by field name; what is null or unknown is left out."""
    spelling: dict[str, str]
    """The key that each field was given by."""
    prefix: tuple[str, ...]
    """Where the config was nested."""
    faults: list[InitErrorDetails]
    """Keys missing or mistyped."""

    def fault(self, field: str, message: str) -> InitErrorDetails:
        """Return a fault of one field, at the key that it was given by."""
        return _fault((*self.prefix, self.spelling.get(field, field)), message, self.fields.get(field))

    def located(self, error: ValidationError) -> list[InitErrorDetails]:
        """Return the faults of an error raised on ``fields``, at the keys that they were given by."""
        found: list[InitErrorDetails] = []
        for detail in error.errors():
            head, *rest = detail["loc"]
            if detail["type"] == "missing" and not rest:
                continue  # stated by ``faults`` already, under the name that the model type knows
            key = self.spelling.get(str(head), head)
            found.append(
                InitErrorDetails(
                    type=detail["type"],
                    loc=(*self.prefix, key, *rest),
                    input=detail["input"],
                    ctx=detail.get("ctx", {}),
                )
            )
        return found


def import_config(title: str, config: Mapping[object, object], fields: Collection[str]) -> ImportedConfig:
    """Return a config under our field names, its missing and mistyped keys found.

    Parameters
    ----------
    title
        Name of the spec, for the error.
    config
        The mapping as given.
    fields
        Our field names.

    Raises
    ------
    pydantic.ValidationError
        If ``model_type`` is missing or unknown; nothing else can be judged then.
    """
    plain, prefix = _unnested({str(key): value for key, value in config.items()})
    given = {key: value for key, value in plain.items() if value is not None}
    architecture = _architecture(title, given, prefix)
    names = dict(_SPELLINGS)
    if architecture.is_encoder_decoder:
        names |= _ENCODER_DECODER_SPELLINGS
    spelling: dict[str, str] = {}
    values: dict[str, object] = {}
    faults: list[InitErrorDetails] = []
    unknown: list[str] = []
    for key, value in given.items():
        field = names.get(key, key)
        if field not in fields:
            unknown += [key] if key not in _NO_SLIPS else []
        elif key == "_name_or_path" and "name" in given:
            continue
        elif field in values:
            faults.append(_fault((*prefix, key), f"given twice, as '{spelling[field]}' too", value))
        else:
            values[field], spelling[field] = value, key
    if architecture.is_encoder_decoder and "num_encoder_layers" in values:
        values.setdefault("num_hidden_layers", values["num_encoder_layers"])
    absent = [field for field in fields if field not in values]
    preferred = {field: key for key, field in names.items()} if architecture.is_encoder_decoder else {}
    wanted = {preferred.get(field, field): field for field in absent} | {field: field for field in absent}
    slips: set[str] = set()
    for key in unknown:
        for near in difflib.get_close_matches(key, wanted, n=1, cutoff=_RESEMBLANCE):
            slips.add(wanted[near])
            faults.append(_fault((*prefix, key), f"unknown key (did you mean '{near}'?)", given[key]))
    for field in architecture.required:
        if field not in values and field not in slips:
            loc = (*prefix, preferred.get(field, field))
            faults.append(InitErrorDetails(type="missing", loc=loc, input=dict(plain)))
    return ImportedConfig(values, spelling, prefix, faults)


def _unnested(config: dict[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
    nested = config.get(NESTED_KEY)
    if not isinstance(nested, Mapping):
        return config, ()
    outer = {key: config[key] for key in _OUTER_KEYS if key in config}
    return {**outer, **{str(key): value for key, value in nested.items()}}, (NESTED_KEY,)


def _architecture(title: str, given: Mapping[str, object], prefix: tuple[str, ...]) -> Architecture:
    loc = (*prefix, "model_type")
    model_type = given.get("model_type")
    if model_type is None:
        fault = InitErrorDetails(type="missing", loc=loc, input=dict(given))
        raise ValidationError.from_exception_data(title, [fault])
    if isinstance(model_type, str) and model_type in ARCHITECTURES:
        return ARCHITECTURES[model_type]
    near = difflib.get_close_matches(str(model_type), ARCHITECTURES, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    message = f"unknown architecture '{model_type}'{hint}; known: {', '.join(sorted(ARCHITECTURES))}"
    raise ValidationError.from_exception_data(title, [_fault(loc, message, model_type)])


def _fault(loc: tuple[str | int, ...], message: str, value: object) -> InitErrorDetails:
    # The message is passed as a value since the template of a custom error gives braces a meaning.
    error = PydanticCustomError("config_json", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=loc, input=value)
