"""The verdict: does speculation pay, by how much, and how far to trust the answer."""

from __future__ import annotations

from specsim.results.metrics import Metrics
from specsim.results.provenance import Provenance
from specsim.results.summary import Estimate, Speedup, Verdict, number

_FEW_PROMPTS = 10


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
            _caveats(provenance, is_energy_shown),
        )
        return {"pays": None, "text": _joined(parts), "break_even_batch": None}
    pays = _pays(speedup["tpot"])
    parts = (
        _headline(pays, speedup, baseline),
        _energy(speedup["energy"], provenance),
        _cost(speedup["cost"], speculation or {}, provenance),
        _limits(baseline, speculation),
        _caveats(provenance, is_energy_shown),
    )
    return {"pays": pays, "text": _joined(parts), "break_even_batch": None}


def how_to_read(provenance: Provenance) -> str:
    """Say how wide to read the result, given what its profile and its prices rest on."""
    price = (
        "" if provenance.price is None else f" Dollars are for the whole time of a run: {provenance.price}."
    )
    return f"{_accuracy(provenance)}{price}"


def _accuracy(provenance: Provenance) -> str:
    if provenance.profile_kind == "unit":
        return (
            "The intervals cover the choice of prompts only. Costs count target steps (closed form): the "
            "result holds where a target step takes the same time whatever it verifies."
        )
    error, power_error = provenance.held_out_error, provenance.held_out_power_error
    if provenance.profile_kind == "datasheet" and error is not None and power_error is not None:
        return (
            "The intervals cover the choice of prompts only. Step times are a datasheet profile's, "
            f"{_percent(error)} off on average on measured runs; watts are fitted to such runs, "
            f"{_percent(power_error)} off on those left out."
        )
    if provenance.profile_kind == "datasheet":
        return (
            "The intervals cover the choice of prompts only. The profile is a datasheet's, not calibrated: "
            "step times 10-30 % off are usual, since measured devices reach about 0.77-0.88 of their "
            "datasheet's bandwidth and 0.66-0.68 of its arithmetic (fits to published layer timings of A100, "
            "A40 and H100) and launch overhead is left to a prior. What both arms share cancels in a "
            "speed-up; the cost of extra positions and of draft steps does not."
        )
    spread = (
        "its error on measurements that it was not fitted to is not known"
        if error is None
        else f"on measurements that it was not fitted to its step times are {_percent(error)} off on average"
    )
    return (
        f"The intervals cover the choice of prompts only. The profile is fitted to measured runs: {spread}."
    )


def known_limitations(
    provenance: Provenance,
    *,
    num_prompts: int,
    num_requests: int,
    num_censored: int,
    is_energy_shown: bool,
    is_cost_known: bool,
) -> list[str]:
    """List what the result does not cover, one sentence each, the gravest first."""
    found = (
        (
            provenance.lossy,
            "The verification rule is lossy: the output does not follow the target's distribution; "
            f"{_loss(provenance)}.",
        ),
        (
            provenance.approximate,
            "Replay is approximate here: the lookahead policy reads the draft past a rejection, which the "
            "trace does not hold.",
        ),
        (
            provenance.stand_in is not None,
            f"Acceptance was not recorded on this pair of models but on {provenance.stand_in}.",
        ),
        (
            provenance.power_is_estimated and not is_energy_shown,
            "Joules are withheld: the power figures of the profile are estimated.",
        ),
        (
            provenance.power_is_estimated and is_energy_shown,
            "Joules rest on estimated watts: read them as orders of magnitude.",
        ),
        (
            provenance.device_energy_is_estimated and is_energy_shown,
            "The floor of the chips' energy rests on estimated joules per byte and operation.",
        ),
        (
            not provenance.power_is_estimated and not is_energy_shown,
            "There are no joules: the profile states no power.",
        ),
        (
            provenance.price_is_estimated and is_cost_known,
            "Dollars rest on an estimated price; give your own in cost.usd_per_hour.",
        ),
        (
            provenance.price is not None and not is_cost_known,
            "There is no cost of a token: the price of a device or the joules to be paid are not known.",
        ),
        (
            num_prompts == 1,
            "All requests come from one prompt: there is no interval, and no telling how other prompts fare.",
        ),
        (
            1 < num_prompts < _FEW_PROMPTS,
            f"Only {num_prompts} prompts: intervals from so few are rough and tend to be too narrow.",
        ),
        (
            num_requests > num_prompts > 1,
            f"{num_requests} requests come from {num_prompts} prompts; repeats of a prompt count as one in "
            "the intervals.",
        ),
        (
            num_requests < 100,
            f"A p99 of {num_requests} requests is close to the largest value.",
        ),
        (
            num_censored > 0,
            f"Rounds in which a recording ends, not counted in the acceptance: {num_censored}.",
        ),
    )
    return [sentence for holds, sentence in found if holds] + list(provenance.notes)


def _pays(tpot: Estimate) -> bool | None:
    if tpot["ci_low"] is None or tpot["ci_high"] is None:
        return None
    if tpot["ci_low"] > 1.0:
        return True
    return False if tpot["ci_high"] < 1.0 else None


def _headline(pays: bool | None, speedup: Speedup, baseline: Metrics) -> str:
    tpot, throughput = speedup["tpot"], speedup["throughput"]
    if tpot["mean"] is None:
        return "Undecided: no request has more than one token, so there is no time per token to compare."
    claims = {True: "Speculation pays", False: "Speculation does not pay", None: "Undecided"}
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


def _energy(energy: Estimate, provenance: Provenance) -> str:
    if not energy["mean"]:
        return ""
    return f"Energy {_change(energy, 'estimated watts' if provenance.power_is_estimated else '')}."


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
    percent = 100.0 * (1.0 / gain - 1.0)
    return f"{'−' if percent < 0 else '+'}{abs(percent):.0f}"


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


def _caveats(provenance: Provenance, is_energy_shown: bool) -> str:
    withheld = provenance.power_is_estimated and not is_energy_shown
    named = (
        (provenance.stand_in is not None, f"Trace stands in: recorded on {provenance.stand_in}."),
        (provenance.lossy, f"Lossy verification, {_loss(provenance)}."),
        (provenance.approximate, "Approximate replay."),
        (withheld, f"Joules withheld: {_guessed_watts(provenance)} a guess."),
    )
    return " ".join([_rests_on(provenance), *(text for holds, text in named if holds)])


def _rests_on(provenance: Provenance) -> str:
    if provenance.profile_kind == "unit":
        return "Costs in target steps, no device."
    error, power_error = provenance.held_out_error, provenance.held_out_power_error
    if provenance.profile_kind == "fitted":
        return "Profile: fitted." if error is None else f"Profile: fitted, held-out error {_percent(error)}."
    if error is None or power_error is None:
        return "Profile: datasheet, not calibrated, step times 10–30 % off are usual."
    return (
        f"Profile: step times datasheet, {_percent(error)} off on measured runs; watts fitted, held-out error "
        f"{_percent(power_error)}."
    )


def _guessed_watts(provenance: Provenance) -> str:
    are_called_fitted = provenance.profile_kind == "datasheet" and provenance.held_out_power_error is not None
    return "a part of the watts is" if are_called_fitted else "watts are"


def _loss(provenance: Provenance) -> str:
    """Say how far the output of a lossy rule is from the target's law."""
    if provenance.total_variation is None:
        return "how far from the target was not measured"
    return f"total variation of the next token from the target {provenance.total_variation:.3f}"


def _percent(fraction: float) -> str:
    return f"{100.0 * fraction:.2g} %"
