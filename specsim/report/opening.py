"""Where the live panel opens: at the batch, the lookahead and the acceptance of the run above it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specsim.report.numbers import figure
from specsim.report.what_if import Start, WhatIf
from specsim.results.metrics import Metrics
from specsim.results.summary import number
from specsim.scenario import Scenario
from specsim.speculation.theory import expected_tokens

_DEFAULT_ACCEPTANCE = 0.7
"""Where the slider begins if nothing was drafted."""


@dataclass(frozen=True, slots=True)
class Met:
    """What a run met, as far as it is known."""

    batch: float | None
    """Mean of the baseline's decode steps, which the verdict names."""
    tokens_per_round: float | None
    drafted_per_round: float | None
    """Draft tokens of a round that drafts."""
    gain: float | None
    """Speed-up per token."""

    @classmethod
    def of(cls, baseline: Metrics, speculation: Metrics, gain: float | None) -> Met:
        """Return what the metrics of both arms say of it."""
        drafted, drafts = (number(speculation, f"spec_decode_num_{of}") for of in ("draft_tokens", "drafts"))
        return cls(
            batch=number(baseline, "mean_decode_batch"),
            tokens_per_round=number(speculation, "tokens_per_round") if drafts else None,
            drafted_per_round=drafted / drafts if drafted and drafts else None,
            gain=gain,
        )


def opening(scenario: Scenario, met: Met) -> Start:
    """Return the settings at which a panel's round is that of a run, as near as a closed form can be.

    Parameters
    ----------
    scenario
        What was run.
    met
        What came of it.
    """
    lookahead = _lookahead(scenario, met)
    return {
        "acceptance_rate": fitted_acceptance(met.tokens_per_round, lookahead),
        "lookahead": lookahead,
        "batch": max(round(met.batch or 1.0), 1),
        "gain": met.gain,
    }


def fitted_acceptance(tokens_per_round: float | None, lookahead: int) -> float:
    """Return the rate at which the closed form gives the tokens of a round, to three decimals.

    Solves Equation 1 of Leviathan et al. (2023) for α by bisection; where nothing was drafted, 0.7.

    Parameters
    ----------
    tokens_per_round
        Tokens that a round emits, at most one more than it drafts.
    lookahead
        Draft tokens a round.
    """
    if tokens_per_round is None or lookahead == 0:
        return _DEFAULT_ACCEPTANCE
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expected_tokens(middle, lookahead) < tokens_per_round else (low, middle)
    return round(low, 3)


def opening_gain(panel: WhatIf) -> float | None:
    """Return the wall-time gain that the panel shows when it opens; None where its device lacks the batch."""
    start, own = panel["start"], panel["devices"][0]
    row = panel["batches"].index(start["batch"])
    target_s, draft_s = own["target_s"][row], own["draft_s"][row]
    if target_s is None or draft_s is None:
        return None
    lookahead = start["lookahead"]
    tokens = expected_tokens(start["acceptance_rate"], lookahead)
    return tokens * target_s[0] / (target_s[lookahead] + draft_s[lookahead])


def opening_note(panel: WhatIf, what: str) -> str:
    """Return what the panel opens at, and why its gain is not quite that of the simulation.

    Parameters
    ----------
    panel
        Its tables.
    what
        What it opens at, in words, such as ``this run``.
    """
    start, gain = panel["start"], opening_gain(panel)
    simulated = start["gain"]
    at = f"Opens at batch {start['batch']}, K {start['lookahead']} and the acceptance of {what}"
    if simulated is None or gain is None:
        return f"{at}."
    return (
        f"{at}: {figure(gain)}×, where the simulation gives {figure(simulated)}×. A round here leaves out"
        " prefill between rounds, a batch that rises and falls, contexts that grow, drafts of other lengths"
        " or branches, and how acceptance differs by position and text."
    )


def _lookahead(scenario: Scenario, met: Met) -> int:
    """Return the lookahead; of a policy that varies it, the nearest to its mean that allows the tokens."""
    most = scenario.num_speculative_tokens
    if scenario.lookahead.kind == "fixed" or met.drafted_per_round is None:
        return most
    least = 0 if met.tokens_per_round is None else math.ceil(met.tokens_per_round - 1.0)
    return min(max(round(met.drafted_per_round), least), most)
