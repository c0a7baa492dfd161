"""The verdict: when speculation pays, what its sentence names, and joules that rest on a guess."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specsim.results.summary import Estimate, Speedup
from specsim.results.verdict import verdict
from tests.constant_cost import ClosedLoop

MANY = ClosedLoop(output_tokens=(40,) * 24, prompts=tuple(range(24)), acceptance=(0.7, 0.8))


def judged(low: float | None, high: float | None, *, mean: float | None = 1.0) -> bool | None:
    estimate: Estimate = {"mean": mean, "ci_low": low, "ci_high": high, "num_prompts": 5}
    speedup: Speedup = {
        "e2el": estimate,
        "tpot": estimate,
        "throughput": estimate,
        "energy": estimate,
        "cost": estimate,
    }
    return verdict({}, {}, speedup, ClosedLoop().provenance, is_energy_shown=True)["pays"]


@pytest.mark.parametrize(
    ("low", "high", "pays"),
    [(1.01, 1.2, True), (0.8, 0.99, False), (0.9, 1.1, None), (1.0, 1.2, None), (None, None, None)],
)
def test_speculation_pays_only_where_the_interval_is_above_one(
    low: float | None, high: float | None, pays: bool | None
) -> None:
    assert judged(low, high) is pays


def test_a_good_draft_pays_and_the_sentence_gives_the_three_speedups() -> None:
    summary = MANY.result().summary()
    speedup = summary["speedup"]
    assert speedup is not None
    assert summary["verdict"]["pays"] is True
    text = summary["verdict"]["text"]
    tpot = speedup["tpot"]
    assert text.startswith(f"Speculation pays: {tpot['mean']:.2f}x faster per user at batch 4 (95% CI ")
    assert f"{tpot['ci_low']:.2f}\u2013{tpot['ci_high']:.2f}, 24 prompts)" in text
    throughput, energy = speedup["throughput"], speedup["energy"]
    between = f"({throughput['ci_low']:.2f}\u2013{throughput['ci_high']:.2f})."
    assert f"throughput {throughput['mean']:.2f}x {between}" in text
    change, least, most = (100 - 100 / energy[name] for name in ("mean", "ci_low", "ci_high"))
    assert f"Energy \u2212{change:.0f} %/token (\u2212{most:.0f} to \u2212{least:.0f} %)." in text
    assert text.endswith("Profile: datasheet, not calibrated, step times 10\u201330 % off are usual.")


def test_a_draft_that_is_never_accepted_does_not_pay() -> None:
    poor = ClosedLoop(output_tokens=(40,) * 24, prompts=tuple(range(24)), acceptance=(0.0, 0.05))
    summary = poor.result().summary()
    assert summary["verdict"]["pays"] is False
    assert summary["verdict"]["text"].startswith("Speculation does not pay: 0.")
    assert "Energy +" in summary["verdict"]["text"]


def test_the_sentence_gives_the_fraction_of_the_physical_limit_in_time_and_energy() -> None:
    share = "50 % of the physical limit in time and 25 % in energy"
    assert (
        f" Decode steps at {share} (baseline 50 % and 25 %). " in MANY.result().summary()["verdict"]["text"]
    )
    assert f" Decode steps at {share}. " in ClosedLoop().baseline_only().summary()["verdict"]["text"]


def test_the_fraction_is_of_time_alone_where_joules_are_withheld() -> None:
    text = MANY.with_provenance(power_is_estimated=True).result().summary()["verdict"]["text"]
    assert " Decode steps at 50 % of the physical limit (baseline 50 %). " in text


def test_costs_without_a_limit_name_no_fraction() -> None:
    result = MANY.result()
    steps = result.tables.steps.filled(0.0, "limit_s", "limit_j")
    tables = type(result.tables)(result.tables.requests, steps, result.tables.rounds)
    summary = MANY.result(tables=tables).summary()
    assert "physical limit" not in summary["verdict"]["text"]
    assert summary["baseline"]["limit_fraction"] is None
    assert summary["baseline"]["limit_ms_per_token"] is None


def test_a_guessed_floor_of_the_chips_is_withheld_unless_asked_for() -> None:
    loop = MANY.with_provenance(device_energy_is_estimated=True)
    tables = loop.result().tables
    steps = tables.steps.filled(0.5, "device_limit_j")
    tables = type(tables)(tables.requests, steps, tables.rounds)
    withheld = loop.result(tables=tables).summary()
    asked = loop.result(tables=tables, show_estimated_energy=True).summary()
    assert withheld["baseline"]["device_limit_joules_per_token"] is None
    assert withheld["baseline"]["limit_joules_per_token"] is not None
    assert asked["baseline"]["device_limit_joules_per_token"] is not None
    for summary in (withheld, asked):
        assert "The floor of the chips' energy rests on estimated" in " ".join(summary["known_limitations"])


def test_speedups_are_ratios_of_sums() -> None:
    result = MANY.result()
    summary = result.summary()
    frame = result.requests
    frame["e2el"] = frame.finish_s - frame.arrival_s
    frame["decode"] = frame.finish_s - frame.first_token_s
    total = frame.groupby("arm", observed=True)[["e2el", "decode", "num_output_tokens"]].sum()
    baseline, speculation = total.loc["baseline"], total.loc["speculation"]
    speedup = summary["speedup"]
    assert speedup is not None
    assert speedup["e2el"]["mean"] == pytest.approx(baseline.e2el / speculation.e2el, rel=1e-12)
    assert speedup["tpot"]["mean"] == pytest.approx(baseline.decode / speculation.decode, rel=1e-12)
    joules: dict[str, Any] = {
        arm: summary[arm]["energy_per_token_joules"] for arm in ("baseline", "speculation")
    }
    assert speedup["energy"]["mean"] == pytest.approx(joules["baseline"] / joules["speculation"], rel=1e-12)


def test_a_baseline_alone_has_no_verdict() -> None:
    summary = ClosedLoop().baseline_only().summary()
    assert summary["speculation"] is None
    assert summary["speedup"] is None
    assert summary["verdict"]["pays"] is None
    assert summary["verdict"]["text"].startswith("No speculation in this scenario: baseline only.")


def test_the_sentence_names_lossy_approximate_and_stand_in() -> None:
    loop = MANY.with_provenance(lossy=True, approximate=True, stand_in="another-135m with prompt lookup")
    summary = loop.result().summary()
    lossy = "Lossy verification, how far from the target was not measured."
    for words in (lossy, "Approximate replay.", "recorded on another-135m"):
        assert words in summary["verdict"]["text"]
    joined = " ".join(summary["known_limitations"])
    for words in ("verification rule is lossy", "Replay is approximate", "another-135m with prompt lookup"):
        assert words in joined


def test_a_clean_origin_names_none_of_them() -> None:
    text = MANY.result().summary()["verdict"]["text"]
    assert not any(word in text for word in ("Lossy", "Approximate", "stands in", "guess"))


def test_a_fitted_profile_states_its_held_out_error() -> None:
    summary = MANY.with_provenance(profile_kind="fitted", held_out_error=0.041).result().summary()
    assert summary["verdict"]["text"].endswith("Profile: fitted, step times 4.1 % off on held-out runs.")
    assert "4.1 % off on average" in summary["how_to_read"]
    assert "fitted profile constant" in str(summary["baseline"]["measurement_method"])


def test_a_fitted_profile_without_a_held_out_error_says_so() -> None:
    summary = MANY.with_provenance(profile_kind="fitted").result().summary()
    assert summary["verdict"]["text"].endswith("Profile: fitted.")
    assert "is not known" in summary["how_to_read"]


def test_a_fitted_profile_tells_the_error_of_its_watts_where_they_are_fitted() -> None:
    fitted = MANY.with_provenance(profile_kind="fitted", held_out_error=0.059, held_out_power_error=0.057)
    summary = fitted.result().summary()
    assert summary["verdict"]["text"].endswith("step times 5.9 % and watts 5.7 % off on held-out runs.")
    assert "its step times are 5.9 % off on average, its watts 5.7 %." in summary["how_to_read"]


def test_fitted_watts_beside_datasheet_times_are_told_apart() -> None:
    summary = MANY.with_provenance(held_out_error=0.132, held_out_power_error=0.057).result().summary()
    said = (
        "Profile: step times datasheet, 13 % off on measured runs; watts fitted, 5.7 % off on held-out runs."
    )
    assert summary["verdict"]["text"].endswith(said)
    assert "watts are fitted to such runs, 5.7 % off" in summary["how_to_read"]
    assert summary["provenance"]["profile_kind"] == "datasheet"


def test_a_datasheet_profile_states_its_spread_and_why() -> None:
    text = MANY.result().summary()["how_to_read"]
    assert "10-30 %" in text
    assert "bandwidth" in text


def test_unit_costs_are_named_as_no_device() -> None:
    summary = MANY.with_provenance(profile_kind="unit").result().summary()
    assert summary["verdict"]["text"].endswith("Costs in target steps, no device.")
    assert "Costs count target steps" in summary["how_to_read"]


def test_joules_from_guessed_watts_are_withheld_everywhere() -> None:
    result = MANY.with_provenance(power_is_estimated=True).result()
    summary = result.summary()
    for arm in (summary["baseline"], summary["speculation"] or {}):
        assert arm["total_energy_joules"] is None
        assert arm["energy_per_token_joules"] is None
        assert arm["static_power_baseline_watts"] is None
        assert arm["energy_limit_fraction"] is None
        assert set(arm["energy_joules"].values()) == {None}
    assert summary["speedup"] is not None
    assert summary["speedup"]["energy"]["mean"] is None
    assert summary["intervals"]["baseline"]["energy_per_token_joules"] is None
    assert result.steps[["draft_energy_j", "target_energy_j", "limit_j"]].isna().all(axis=None)
    assert "Energy" not in summary["verdict"]["text"]
    assert "Joules withheld: 100 % from guessed watts." in summary["verdict"]["text"]
    assert "Joules are withheld" in " ".join(summary["known_limitations"])
    assert summary["baseline"]["mean_tpot_ms"] == MANY.result().summary()["baseline"]["mean_tpot_ms"]


def test_joules_from_guessed_watts_are_shown_and_marked_when_asked_for() -> None:
    result = MANY.with_provenance(power_is_estimated=True).result(show_estimated_energy=True)
    summary = result.summary()
    assert (
        summary["baseline"]["total_energy_joules"]
        == MANY.result().summary()["baseline"]["total_energy_joules"]
    )
    assert " %, estimated watts)." in summary["verdict"]["text"]
    assert "estimated watts" in " ".join(summary["known_limitations"])
    assert "estimated watts" in str(summary["baseline"]["measurement_method"])


def test_a_profile_without_power_has_no_joules() -> None:
    result = MANY.result()
    zero = result.tables.steps.filled(0.0, "draft_energy_j", "target_energy_j")
    tables = type(result.tables)(result.tables.requests, zero, result.tables.rounds)
    summary = MANY.result(tables=tables).summary()
    assert summary["baseline"]["total_energy_joules"] is None
    assert "states no power" in " ".join(summary["known_limitations"])


def test_assumed_acceptance_is_said_in_the_verdict_and_in_the_limitations() -> None:
    summary = MANY.with_provenance(acceptance_is_assumed=True).result().summary()
    assert " Acceptance: assumed rates." in summary["verdict"]["text"]
    assert "Acceptance follows assumed rates" in " ".join(summary["known_limitations"])
    assert "assumed" not in str(MANY.result().summary()["verdict"])


def test_nothing_drafted_is_said() -> None:
    text = ClosedLoop(lookahead=0).result().summary()["verdict"]["text"]
    assert text.startswith("Undecided, nothing is drafted: 1.00x per user")


def test_a_few_prompts_are_called_few() -> None:
    assert "Only 8 prompts" in " ".join(ClosedLoop().result().summary()["known_limitations"])


def test_the_notes_of_the_origin_are_limitations() -> None:
    loop = MANY.with_provenance(notes=("The draft's KV cache is not counted.",))
    assert loop.result().summary()["known_limitations"][-1] == "The draft's KV cache is not counted."


def test_the_summary_has_the_documented_keys_in_order() -> None:
    summary = MANY.result().summary()
    documented = (
        "schema_version specsim_version seed key scenario provenance verdict baseline speculation speedup"
    )
    assert list(summary)[:10] == documented.split()
    assert list(summary)[-2:] == ["known_limitations", "definitions"]
    assert list(summary["verdict"]) == ["pays", "text", "break_even_batch"]
    assert list(summary["speedup"] or ()) == ["e2el", "tpot", "throughput", "energy", "cost"]
    assert list((summary["speculation"] or {})["energy_joules"]) == [
        "prefill",
        "draft",
        "verify_accepted",
        "wasted",
        "idle",
    ]


def test_the_summary_is_json_and_its_own_copy() -> None:
    result = MANY.result()
    first = result.summary()
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    first["baseline"]["completed"] = -1
    assert result.summary()["baseline"]["completed"] == 24
