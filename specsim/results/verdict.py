"""The verdict: does speculation pay, by how much, and how far to trust the answer."""

from __future__ import annotations

from collections.abc import Sequence

from specsim.hardware.guess import bounds, is_shown
from specsim.results.metrics import Metrics
from specsim.results.provenance import Provenance
from specsim.results.reading import loss, percent
from specsim.results.summary import Estimate, Speedup, Verdict, number


def verdict(
    baseline: Metrics,
    speculation: Metrics | None,
    speedup: Speedup | None,
    provenance: Provenance,
    *,
    is_energy_shown: bool,
) -> Verdict:
    """Judge by the time per output token of a user: it pays if the interval of its speed-up is above 1.

    Parameters
    ----------
    baseline
        Metrics of the baseline arm.
    speculation
        Metrics of the speculative arm; None where only the baseline was simulated.
    speedup
        Of speculation over the baseline; None as before.
    provenance
        Of the result.
    is_energy_shown
        Joules are known, or asked for although they rest on a guess.
    """
    if speedup is None:
        parts: tuple[str, ...] = (
            "No speculation in this scenario: baseline only.",
            _price(baseline, provenance, before="Cost "),
            _limits(baseline, None),
            _caveats(provenance, [baseline], is_energy_shown),
        )
        return {"pays": None, "text": _joined(parts), "break_even_batch": None}
    pays = _pays(speedup["tpot"])
    parts = (
        _headline(pays, speedup, baseline, speculation or {}),
        _energy(speedup["energy"], baseline, speculation or {}, provenance),
        _cost(speedup["cost"], speculation or {}, provenance),
        _limits(baseline, speculation),
        _caveats(provenance, [baseline, speculation or {}], is_energy_shown),
    )
    return {"pays": pays, "text": _joined(parts), "break_even_batch": None}


def _pays(tpot: Estimate) -> bool | None:
    if tpot["ci_low"] is None or tpot["ci_high"] is None:
        return None
    if tpot["ci_low"] > 1.0:
        return True
    return False if tpot["ci_high"] < 1.0 else None


def _headline(pays: bool | None, speedup: Speedup, baseline: Metrics, speculation: Metrics) -> str:
    tpot, throughput = speedup["tpot"], speedup["throughput"]
    if tpot["mean"] is None:
        return "Undecided: no request has more than one token, so there is no time per token to compare."
    nothing = ", nothing is drafted" if number(speculation, "spec_decode_num_drafts") == 0 else ""
    claims = {True: "Speculation pays", False: "Speculation does not pay", None: f"Undecided{nothing}"}
    batch = number(baseline, "mean_decode_batch")
    at_batch = "" if batch is None else f" at batch {batch:.2g}" if batch < 10 else f" at batch {batch:.0f}"
    faster = f"{tpot['mean']:.2f}x {'faster ' if pays else ''}per user{at_batch} ({_confidence(tpot)})"
    return f"{claims[pays]}: {faster}{_throughput(throughput)}."


def _throughput(throughput: Estimate) -> str:
    if throughput["mean"] is None:
        return ""
    low, high = throughput["ci_low"], throughput["ci_high"]
    interval = "" if low is None or high is None else f" ({low:.2f}–{high:.2f})"
    return f", throughput {throughput['mean']:.2f}x{interval}"


def _confidence(estimate: Estimate) -> str:
    prompts = f"{estimate['num_prompts']} prompt{'s' if estimate['num_prompts'] > 1 else ''}"
    if estimate["ci_low"] is None or estimate["ci_high"] is None:
        return f"{prompts}, no interval"
    return f"95% CI {estimate['ci_low']:.2f}–{estimate['ci_high']:.2f}, {prompts}"


def _energy(energy: Estimate, baseline: Metrics, speculation: Metrics, provenance: Provenance) -> str:
    if not energy["mean"]:
        return ""
    note = _guess(energy["mean"], baseline, speculation) if provenance.power_is_estimated else ""
    return f"Energy {_change(energy, note)}."


def _guess(gain: float, baseline: Metrics, speculation: Metrics) -> str:
    """Say what becomes of the change where guessed watts are half or twice what was guessed."""
    shares = [number(arm, "guessed_energy_fraction") or 0.0 for arm in (baseline, speculation)]
    if not all(is_shown(share) for share in shares):
        return "estimated watts"
    of_baseline, of_speculation = (bounds(share) for share in shares)
    gains = [gain * before / after for before, after in zip(of_baseline, of_speculation, strict=True)]
    first, last = (_signed(one) for one in sorted(gains, reverse=True))
    return f"guessed watts at half or twice: {first if first == last else f'{first} to {last}'} %"


def _cost(cost: Estimate, speculation: Metrics, provenance: Provenance) -> str:
    if not cost["mean"]:
        return _price(speculation, provenance, before="Cost ")
    return f"Cost {_change(cost, '')}{_price(speculation, provenance, before=', ')}"


def _price(metrics: Metrics, provenance: Provenance, *, before: str) -> str:
    """Return the cost of a million tokens with what stands before it; empty where it is not known."""
    cost = number(metrics, "usd_per_mtok")
    if cost is None:
        return ""
    return f"{before}{cost:.3g} USD/Mtok{' (estimated price)' if provenance.price_is_estimated else ''}."


def _change(gain: Estimate, note: str) -> str:
    """Return how much less or more of something speculation takes, given baseline ÷ speculation."""
    assert gain["mean"]
    low, high = gain["ci_low"], gain["ci_high"]
    ends = f"{_signed(high)} to {_signed(low)} %" if low and high else ""
    remarks = ", ".join(part for part in (ends, note) if part)
    return f"{_signed(gain['mean'])} %/token{f' ({remarks})' if remarks else ''}"


def _signed(gain: float) -> str:
    change = round(100.0 * (1.0 / gain - 1.0))
    return f"{'−' if change < 0 else '+'}{abs(change)}"


def _limits(baseline: Metrics, speculation: Metrics | None) -> str:
    """Say how near the decode steps come to their physical limit, in time and in joules where known."""
    shown = _fractions(baseline if speculation is None else speculation)
    if not shown:
        return ""
    of_time, *of_energy = shown
    also = f" in time and {of_energy[0]} in energy" if of_energy else ""
    compared = "" if speculation is None else f" (baseline {' and '.join(_fractions(baseline))})"
    return f"Decode steps at {of_time} of the physical limit{also}{compared}."


def _fractions(metrics: Metrics) -> list[str]:
    shares = (number(metrics, name) for name in ("limit_fraction", "energy_limit_fraction"))
    return [f"{100.0 * share:.0f} %" for share in shares if share is not None]


def _joined(parts: tuple[str, ...]) -> str:
    return " ".join(part for part in parts if part)


def _caveats(provenance: Provenance, arms: Sequence[Metrics], is_energy_shown: bool) -> str:
    guessed = max(number(arm, "guessed_energy_fraction") or 0.0 for arm in arms)
    withheld = provenance.power_is_estimated and not is_energy_shown
    named = (
        (provenance.acceptance_is_assumed, "Acceptance: assumed rates."),
        (provenance.stand_in is not None, f"Trace stands in: recorded on {provenance.stand_in}."),
        (provenance.lossy, f"Lossy verification, {loss(provenance)}."),
        (provenance.approximate, "Approximate replay."),
        (withheld, f"Joules withheld: {100.0 * guessed:.0f} % from guessed watts."),
    )
    return " ".join([_rests_on(provenance), *(text for holds, text in named if holds)])


def _rests_on(provenance: Provenance) -> str:
    if provenance.profile_kind == "unit":
        return "Costs in target steps, no device."
    error, power_error = provenance.held_out_error, provenance.held_out_power_error
    if provenance.profile_kind == "fitted":
        watts = "" if power_error is None else f" and watts {percent(power_error)}"
        return (
            "Profile: fitted."
            if error is None
            else f"Profile: fitted, step times {percent(error)}{watts} off on held-out runs."
        )
    if error is None or power_error is None:
        return "Profile: datasheet, not calibrated, step times 10–30 % off are usual."
    return (
        f"Profile: step times datasheet, {percent(error)} off on measured runs; watts fitted, "
        f"{percent(power_error)} off on held-out runs."
    )
