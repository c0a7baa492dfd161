"""Every shipped scenario gives the answer on record, and docs/scenarios.md prints that answer.

After a change of results on purpose, one command writes goldens and answers anew::

    python -m pytest tests/test_golden_scenarios.py --regen-all
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import specsim
from specsim.results import Summary
from specsim.scenario import load_scenario

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
DOCS = ROOT / "docs" / "scenarios.md"
SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))

_RELATIVE_ERROR = 1e-9
_PROVENANCE = (
    "profile",
    "profile_kind",
    "held_out_error",
    "trace",
    "stand_in",
    "power_is_estimated",
    "price",
)
_METRICS = [
    "completed",
    "duration",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "output_throughput",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "p99_itl_ms",
    "mean_e2el_ms",
    "p99_e2el_ms",
    "token_weighted_tpot_ms",
    "tokens_per_round",
    "mean_decode_batch",
    "energy_per_token_joules",
    "usd_per_mtok",
    "limit_fraction",
    "energy_limit_fraction",
    "limit_ms_per_token",
    "limit_joules_per_token",
    "time_seconds",
    "energy_joules",
    "operations_flops",
    "spec_decode_acceptance_rate",
    "spec_decode_acceptance_length",
    "spec_decode_per_position_acceptance_rates",
    "spec_decode_num_drafts",
    "operations_factor",
    "wasted_positions_per_token",
]


@cache
def _answer(name: str) -> str:
    """Return the compact summary of a scenario as JSON: nothing in it depends on where files lie."""
    summary = specsim.simulate(ROOT / "scenarios" / f"{name}.yaml").summary()
    return json.dumps(_compact(summary), indent=1, ensure_ascii=False) + "\n"


def _compact(summary: Summary) -> dict[str, object]:
    arms = {"baseline": summary["baseline"], "speculation": summary["speculation"] or {}}
    return {
        "verdict": summary["verdict"],
        "provenance": {name: summary["provenance"][name] for name in _PROVENANCE},
        **{arm: {name: found[name] for name in _METRICS if name in found} for arm, found in arms.items()},
        "speedup": summary["speedup"],
        "known_limitations": summary["known_limitations"],
    }


def _differences(recorded: object, found: object, path: str = "") -> Iterator[str]:
    """Yield where two trees differ; numbers by more than a relative error of 1e-9."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*recorded, *found]):
            yield from _differences(recorded.get(key), found.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        for index, (before, after) in enumerate(zip(recorded, found, strict=True)):
            yield from _differences(before, after, f"{path}.{index}")
    elif isinstance(recorded, float) and isinstance(found, float):
        if not math.isclose(recorded, found, rel_tol=_RELATIVE_ERROR, abs_tol=1e-300):
            yield f"{path}: {recorded!r} on record, {found!r} now"
    elif recorded != found:
        yield f"{path}: {recorded!r} on record, {found!r} now"


def _section(name: str) -> str:
    """Return the part of docs/scenarios.md that is about one scenario."""
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", DOCS.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None, f"docs/scenarios.md has no section '## {name}'"
    return found[1]


def _write(name: str) -> None:
    """Put the answer of a scenario on record, in the golden and in the docs."""
    (GOLDEN / f"{name}.json").write_text(_answer(name), encoding="utf-8")
    section = _section(name)
    text = json.loads(_answer(name))["verdict"]["text"]
    answered = re.sub(r"^> .*$", lambda _: f"> {text}", section, count=1, flags=re.M)
    DOCS.write_text(DOCS.read_text(encoding="utf-8").replace(section, answered), encoding="utf-8")


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_gives_the_answer_on_record(name: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("regen_all"):
        _write(name)
    recorded = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert list(_differences(recorded, json.loads(_answer(name)))) == []


@pytest.mark.parametrize(
    ("name", "published"),
    [("ende_t0", 3.2), ("ende_t1", 2.3), ("cnndm_t0", 2.4), ("cnndm_t1", 1.9)],
)
def test_t5_small_speeds_up_as_leviathan_expects(name: str, published: float) -> None:
    mean = json.loads(_answer(f"leviathan_t5_small_{name}"))["speedup"]["tpot"]["mean"]
    assert abs(mean - published) <= 0.1


@pytest.mark.parametrize("name", SCENARIOS)
def test_docs_give_question_answer_and_grounds_of_every_scenario(name: str) -> None:
    section = _section(name)
    assert f"**Question.** {load_scenario(name).description}\n" in section
    assert f"\n> {json.loads(_answer(name))['verdict']['text']}\n" in section
    assert "\n**Rests on.** " in section


def test_goldens_and_docs_hold_no_scenario_that_is_gone() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == SCENARIOS
    sections = re.findall(r"^## (.+)$", DOCS.read_text(encoding="utf-8"), re.M)
    assert sorted(sections) == SCENARIOS


def test_goldens_hold_no_place_on_a_machine() -> None:
    assert not any(str(ROOT) in path.read_text(encoding="utf-8") for path in GOLDEN.iterdir())


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"a": [1.0, 2.0 * (1 + 2e-9)], "b": "x"}, "a.1: "),
        ({"a": [1.0, 2.0], "b": "y"}, "b: "),
        ({"a": [1.0], "b": "x"}, "a: "),
        ({"a": [1.0, None], "b": "x"}, "a.1: "),
        ({"a": [1.0, 2.0], "b": "x", "c": 0}, "c: "),
    ],
)
def test_a_changed_figure_is_told_by_its_place(changed: dict[str, object], where: str) -> None:
    recorded: dict[str, object] = {"a": [1.0, 2.0], "b": "x"}
    (difference,) = _differences(recorded, changed)
    assert difference.startswith(where)
    assert list(_differences(recorded, {"a": [1.0, 2.0 * (1 + 1e-12)], "b": "x"})) == []
