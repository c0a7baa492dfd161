"""Accounting: what each step's time, energy and operations were spent on, and which request caused them.

Conventions. A decode step is shared equally among its sequences; prefill by prompt tokens over the
whole run; idle time and energy in proportion to the busy. Within a step, the draft's passes are shared
equally over its drafted tokens and the target's pass over its verified positions: the rejected ones,
those past the end of a sequence included, are waste. Passes that drafted nothing are waste altogether.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from specsim.arrays import Floats, Ints
from specsim.results.table import Table
from specsim.results.tariff import Tariff

PARTS = ("prefill", "draft", "verify_accepted", "wasted", "idle")


@dataclass(frozen=True, slots=True)
class ArmTables:
    """The three tables of one arm, the power that its devices draw when idle, and what they cost."""

    requests: Table
    steps: Table
    rounds: Table
    idle_power_w: float
    """Of all devices of the arm together, W; NaN where it is not known."""
    guessed_idle_power_w: float = 0.0
    """The part of it that is a guess, W."""
    tariff: Tariff = field(default_factory=Tariff)

    @property
    def duration_s(self) -> float:
        """From the first arrival to the last token, s."""
        if len(self.requests) == 0:
            return float("nan")
        return float(self.requests.floats("finish_s").max() - self.requests.floats("arrival_s").min())

    @property
    def busy_s(self) -> float:
        """Time in steps, s."""
        return float(step_time_s(self.steps).sum())

    @property
    def idle_s(self) -> float:
        """Time outside steps, s. Sums of seconds may differ by rounding from the clock, never by more."""
        idle = self.duration_s - self.busy_s
        return 0.0 if abs(idle) < 1e-9 * self.duration_s else idle


def step_time_s(steps: Table) -> Floats:
    """Duration of each step, draft and target, [steps], s."""
    return steps.floats("draft_s") + steps.floats("target_s")


def is_decode(steps: Table) -> Floats:
    """Return 1.0 where a step is a decode step, 0.0 where it is prefill, [steps]."""
    decode = np.zeros(len(steps))
    decode[steps.labels("phase").rows("decode")] = 1.0
    return decode


def partition(steps: Table, draft: Floats, target: Floats, *, idle: float) -> dict[str, float]:
    """Split an amount over what it was spent on; the parts sum to the whole.

    Parameters
    ----------
    steps
        Steps of one arm.
    draft, target
        The amount in the draft passes and in the target pass of each step, [steps].
    idle
        The amount outside steps.

    Returns
    -------
    dict
        ``prefill``; ``draft``: of drafted tokens that were accepted; ``verify_accepted``: of target
        positions that led to a token; ``wasted``: of rejected drafts, in draft passes and in
        verification; ``idle``.
    """
    decode = is_decode(steps)
    drafted = steps.floats("num_drafted")
    rejected = drafted - steps.floats("num_accepted")
    kept_draft = draft * (1.0 - divide(rejected, drafted, otherwise=1.0))
    kept_target = target * (1.0 - divide(rejected, steps.floats("num_positions"), otherwise=0.0))
    useful = kept_draft + kept_target
    whole = draft + target
    return {
        "prefill": float(whole @ (1.0 - decode)),
        "draft": float(kept_draft @ decode),
        "verify_accepted": float(kept_target @ decode),
        "wasted": float((whole - useful) @ decode),
        "idle": idle,
    }


def guessed_energy_fraction(arm: ArmTables) -> float:
    """Share of the joules of an arm that guessed watts contribute; NaN where the joules are not known."""
    energy_j = float(step_energy_j(arm).sum()) + arm.idle_power_w * arm.idle_s
    guessed_j = float(arm.steps.floats("guessed_j").sum()) + arm.guessed_idle_power_w * arm.idle_s
    # Joules are whole nanojoules, their guessed part is not.
    return min(guessed_j / energy_j, 1.0) if energy_j else float("nan")


def step_energy_j(arm: ArmTables) -> Floats:
    """Energy of each step, draft and target, [steps], J."""
    return arm.steps.floats("draft_energy_j") + arm.steps.floats("target_energy_j")


def request_rows(arm: ArmTables) -> Ints:
    """Row of the requests table that each row of the rounds table belongs to, [rounds]."""
    numbers = arm.requests.ints("request")
    order = np.argsort(numbers)
    return order[np.searchsorted(numbers, arm.rounds.ints("request"), sorter=order)]


def step_rows(arm: ArmTables) -> Ints:
    """Row of the steps table that each row of the rounds table belongs to, [rounds]."""
    numbers = arm.steps.ints("step")
    order = np.argsort(numbers)
    return order[np.searchsorted(numbers, arm.rounds.ints("step"), sorter=order)]


def chunk_gaps_s(arm: ArmTables, requests: Ints, steps: Ints) -> Floats:
    """Time since the request's previous chunk at the end of each round, [rounds], s.

    A chunk is what one verify step emits; the first comes from prefill. The gaps of a request sum
    to its last token's time less its first's.
    """
    ends = (arm.steps.floats("start_s") + step_time_s(arm.steps))[steps]
    order = np.lexsort((ends, requests))
    previous = np.empty(len(order))
    previous[order[1:]] = ends[order[:-1]]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = requests[order[1:]] != requests[order[:-1]]
    opening = order[is_first]
    previous[opening] = arm.requests.floats("first_token_s")[requests[opening]]
    return ends - previous


def request_shares(arm: ArmTables, amount: Floats, requests: Ints, steps: Ints) -> Floats:
    """Each request's share of an amount of each step, [requests]: see the module's conventions."""
    decode = is_decode(arm.steps)
    sequences = np.bincount(steps, minlength=len(arm.steps))
    per_sequence = divide(amount * decode, sequences, otherwise=0.0)
    decoding = by_row(requests, per_sequence[steps], len(arm.requests))
    prompt_tokens = arm.requests.floats("num_prompt_tokens")
    weight = prompt_tokens if prompt_tokens.sum() > 0 else np.ones(len(prompt_tokens))
    return decoding + float(amount @ (1.0 - decode)) * divide(weight, weight.sum(), otherwise=0.0)


def divide(numerator: Floats, denominator: Floats | Ints | float, *, otherwise: float = np.nan) -> Floats:
    """Elementwise quotient, ``otherwise`` where the denominator is zero.

    Examples
    --------
    >>> divide(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, nan]
    """
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    quotient: Floats = np.full(shape, otherwise)
    np.divide(numerator, denominator, out=quotient, where=np.asarray(denominator) != 0)
    return quotient


def by_row(rows: Ints, values: Floats, num_rows: int) -> Floats:
    """Add up values by the row that each belongs to, [num_rows]."""
    return np.bincount(rows, weights=values, minlength=num_rows).astype(np.float64)
