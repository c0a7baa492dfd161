"""The catalogue in print: devices ranked for a model, models by size, scenarios by their question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from specsim.hardware import DeviceCost, ModelSpec
from specsim.report.columns import print_columns
from specsim.report.numbers import ABSENT, figure

_WITHHELD = "withheld"


def print_devices(rows: Sequence[DeviceCost], stream: TextIO, *, show_estimated_energy: bool) -> None:
    """Print devices as ranked; guesses are marked, joules mostly from them withheld unless asked for."""
    titles = ("device", "limit", "token", "of limit", "parallel", "energy", "price", "price", "times", "")
    units = ("", "ms/token", "ms", "%", "positions", "J/token", "$/h", "$/Mtok", "", "")
    cells = [
        (
            row.name,
            figure(1e3 * row.limit_s),
            ABSENT if row.token_s is None else figure(1e3 * row.token_s),
            ABSENT if row.token_s is None else f"{100 * row.limit_s / row.token_s:.0f}",
            f"{row.parallel_positions:.0f}",
            _energy(row, show_estimated_energy=show_estimated_energy),
            _guessed(figure(row.usd_per_hour), is_guess=row.is_price_estimated),
            _guessed(figure(row.usd_per_mtok), is_guess=row.is_price_estimated),
            _times(row),
            "; ".join(_remarks(row)),
        )
        for row in rows
    ]
    print_columns(titles, [units, *cells], stream)


def print_models(models: Iterable[ModelSpec], stream: TextIO) -> None:
    """Print the size of each model."""
    titles = ("model", "parameters", "active", "layers", "width", "vocabulary", "KV elements/token")
    rows = [
        (
            model.name,
            _billions(model.params_total),
            _billions(model.params_active),
            str(model.num_layers),
            str(model.hidden_size),
            str(model.vocab_size),
            str(model.kv_elements_per_token),
        )
        for model in models
    ]
    print_columns(titles, rows, stream)


def print_descriptions(descriptions: Mapping[str, str], stream: TextIO) -> None:
    """Print names with a sentence each."""
    print_columns(("", ""), descriptions.items(), stream, num_left=2)


def _remarks(row: DeviceCost) -> list[str]:
    return [
        *([] if row.fits else ["does not fit"]),
        *(["outside the checked range"] if row.token_s is None else []),
    ]


def _times(row: DeviceCost) -> str:
    kind = "fitted" if row.is_fitted else "datasheet"
    return kind if row.held_out_error is None else f"{kind}, {100 * row.held_out_error:.1f} % off"


def _energy(row: DeviceCost, *, show_estimated_energy: bool) -> str:
    if row.token_j is not None and not row.is_energy_shown and not show_estimated_energy:
        return _WITHHELD
    return _guessed(figure(row.token_j), is_guess=bool(row.guessed_energy_fraction))


def _guessed(text: str, *, is_guess: bool) -> str:
    return f"~{text}" if is_guess and text != ABSENT else text


def _billions(count: int) -> str:
    return f"{count / 1e9:.3f} B" if count >= 1e9 else f"{count / 1e6:.1f} M"
