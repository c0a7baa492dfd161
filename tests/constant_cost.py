"""A small real simulation for tests of results: a closed loop whose steps cost constants.

It knows nothing of specsim but the columns: prefill for each admitted group, then rounds of the batch
in which each draft is kept with its prompt's own probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specsim.config.base import Spec
from specsim.results import Provenance, ResultTables, SimulationResult
from specsim.results.schema import REQUESTS, ROUNDS, STEPS, Column

PREFILL_S = 0.02
TARGET_S = 0.010
POSITION_S = 0.0001
DRAFT_S = 0.001
POWER_W = 400.0
TARGET_FLOPS = 16e9
DRAFT_FLOPS = 2e9


class Setting(Spec):
    """Stands in for the scenario."""

    name: str = "constant-cost"
    """Name of the scenario."""


@dataclass(frozen=True)
class ClosedLoop:
    """The population, the batch and the lookahead of a run."""

    output_tokens: tuple[int, ...] = (20,) * 8
    prompts: tuple[int, ...] = tuple(range(8))
    acceptance: tuple[float, ...] = (0.7,)
    batch: int = 4
    lookahead: int = 3
    seed: int = 0
    guessed_energy_fraction: float = 1.0
    """Share of the joules that guessed watts contribute, if the provenance has such watts."""
    provenance: Provenance = field(
        default_factory=lambda: Provenance(
            specsim_version="0.1.0",
            profile="constant",
            profile_kind="datasheet",
            profile_sha256="0" * 64,
            versions={"numpy": "2"},
        )
    )

    def result(self, **changes: Any) -> SimulationResult:
        """Run both arms."""
        arms = [_run(self, "baseline", 0), _run(self, "speculation", self.lookahead)]
        fields: dict[str, Any] = {
            "scenario": Setting(),
            "seed": self.seed,
            "key": "0" * 64,
            "provenance": self.provenance,
            "tables": _stacked(arms),
            "num_speculative_tokens": self.lookahead,
            "idle_power_w": {"baseline": 70.0, "speculation": 70.0},
            "guessed_idle_power_w": dict.fromkeys(
                ("baseline", "speculation"), 70.0 * self.guessed_energy_fraction
            ),
        }
        return SimulationResult(**fields | changes)

    def baseline_only(self) -> SimulationResult:
        """Run the baseline alone."""
        return self.result(tables=_stacked([_run(self, "baseline", 0)]), num_speculative_tokens=0)

    def with_provenance(self, **changes: Any) -> ClosedLoop:
        """Return the same run with another origin."""
        return replace(self, provenance=replace(self.provenance, **changes))


Rows = dict[str, list[Any]]


def _stacked(arms: Sequence[Mapping[str, Rows]]) -> ResultTables:
    def columns(name: str, declared: tuple[Column, ...]) -> dict[str, Any]:
        return {
            column.name: np.array([value for arm in arms for value in arm[name][column.name]])
            for column in declared
        }

    return ResultTables.of(columns("requests", REQUESTS), columns("steps", STEPS), columns("rounds", ROUNDS))


def _run(loop: ClosedLoop, arm: str, lookahead: int) -> dict[str, Rows]:
    generator = np.random.Generator(np.random.PCG64(loop.seed))
    requests: Rows = {column.name: [] for column in REQUESTS}
    steps: Rows = {column.name: [] for column in STEPS}
    rounds: Rows = {column.name: [] for column in ROUNDS}
    waiting = list(range(len(loop.output_tokens)))
    active: dict[int, int] = {}
    opened: dict[int, tuple[float, float]] = {}
    now = 0.0

    def finish(request: int) -> None:
        arrival, first = opened[request]
        _append(
            requests,
            arm=arm,
            request=request,
            prompt=loop.prompts[request],
            request_class="chat",
            arrival_s=arrival,
            first_token_s=first,
            finish_s=now,
            num_prompt_tokens=10 + request,
            num_output_tokens=loop.output_tokens[request],
            ended_by="cap",
        )

    def step(phase: str, draft_s: float, target_s: float, **counts: int) -> None:
        zero = dict.fromkeys((column.name for column in STEPS), 0)
        _append(
            steps,
            **zero
            | counts
            | {
                "arm": arm,
                "step": len(steps["step"]),
                "phase": phase,
                "start_s": now,
                "draft_s": draft_s,
                "target_s": target_s,
                "draft_energy_j": POWER_W * draft_s,
                "target_energy_j": POWER_W * target_s,
                "draft_flops": counts["num_draft_positions"] * DRAFT_FLOPS,
                "target_flops": counts["num_positions"] * TARGET_FLOPS,
                "limit_s": 0.5 * (draft_s + target_s),
                "limit_j": 0.25 * POWER_W * (draft_s + target_s),
                "guessed_j": loop.guessed_energy_fraction * POWER_W * (draft_s + target_s),
            },
        )

    while waiting or active:
        admitted = [waiting.pop(0) for _ in range(min(len(waiting), loop.batch - len(active)))]
        if admitted:
            arrival = now
            positions = sum(10 + request for request in admitted)
            step(
                "prefill",
                0.0,
                PREFILL_S,
                num_sequences=len(admitted),
                num_positions=positions,
                num_draft_positions=0,
                num_emitted=len(admitted),
            )
            now += PREFILL_S
            for request in admitted:
                opened[request] = (arrival, now)
                active[request] = loop.output_tokens[request] - 1
        for request in [request for request, remaining in active.items() if remaining == 0]:
            del active[request]
            finish(request)
        if not active:
            continue
        number = len(steps["step"])
        accepted_of = {}
        for request, remaining in active.items():
            rate = loop.acceptance[loop.prompts[request] % len(loop.acceptance)]
            stops = np.append(generator.random(lookahead) >= rate, True)
            kept = int(np.argmax(stops))
            emitted = min(kept + 1, remaining)
            accepted_of[request] = min(kept, emitted)
            _append(
                rounds,
                arm=arm,
                step=number,
                request=request,
                num_drafted=lookahead,
                num_accepted=accepted_of[request],
                num_emitted=emitted,
                is_censored=False,
            )
            active[request] = remaining - emitted
        num_positions = len(active) * (lookahead + 1)
        draft_s, target_s = lookahead * DRAFT_S, TARGET_S + POSITION_S * num_positions
        step(
            "decode",
            draft_s,
            target_s,
            num_sequences=len(active),
            num_positions=num_positions,
            num_draft_passes=lookahead,
            num_draft_positions=len(active) * lookahead,
            num_drafted=len(active) * lookahead,
            num_accepted=sum(accepted_of.values()),
            num_emitted=sum(rounds["num_emitted"][-len(active) :]),
        )
        now += draft_s + target_s
        for request in [request for request, remaining in active.items() if remaining == 0]:
            del active[request]
            finish(request)
    return {"requests": requests, "steps": steps, "rounds": rounds}


def _append(rows: Rows, **values: Any) -> None:
    for name in rows:
        rows[name].append(values[name])
