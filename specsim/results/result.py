"""The result of a run: tables, provenance, and the summary drawn from them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, cast

import numpy as np
from pydantic import JsonValue

from specsim.config.base import Spec
from specsim.hardware.guess import is_shown
from specsim.results.accounting import ArmTables, guessed_energy_fraction
from specsim.results.comparison import ArmComparison
from specsim.results.metrics import DEFINITIONS, Metrics, acceptance_metrics, arm_metrics
from specsim.results.provenance import Provenance
from specsim.results.reading import Caveat, limitations, readings
from specsim.results.schema import PROMPTS, REQUESTS, ROUNDS, SCHEMA_VERSION, STEPS
from specsim.results.summary import Summary, json_ready, number
from specsim.results.sums import Sums, prompt_numbers, prompt_sums
from specsim.results.table import ColumnData, Labels, Table
from specsim.results.tariff import Tariff
from specsim.results.verdict import verdict
from specsim.streams import RandomStreams

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_JOULES = ("draft_energy_j", "target_energy_j", "limit_j", "device_limit_j", "guessed_j")

# By name: the report is a layer above this one, and loads a plotting library.
_FIGURES = "specsim.report.figures"
_NOTEBOOK = "specsim.report.notebook"


@dataclass(frozen=True, slots=True)
class ResultTables:
    """Requests, steps and rounds of all arms, stacked."""

    requests: Table
    steps: Table
    rounds: Table

    @classmethod
    def of(cls, requests: ColumnData, steps: ColumnData, rounds: ColumnData) -> ResultTables:
        """Tables of columns [rows] by the names of `specsim.results.schema`."""
        return cls(Table(REQUESTS, requests), Table(STEPS, steps), Table(ROUNDS, rounds))


@dataclass(frozen=True, repr=False)
class SimulationResult:
    """Everything that a run found, and all that is needed to run it again."""

    scenario: Spec
    """The whole input, as validated."""
    seed: int
    key: str
    """Hash of all that the result depends on."""
    provenance: Provenance
    tables: ResultTables
    num_speculative_tokens: int
    """The most that a round drafts; 0 without speculation."""
    idle_power_w: Mapping[str, float]
    """By arm, of all its devices together when idle, W; NaN where the profile states none."""
    guessed_idle_power_w: Mapping[str, float] = field(default_factory=dict)
    """The part of it that is a guess, W; an arm without an entry has none."""
    tariffs: Mapping[str, Tariff] = field(default_factory=dict)
    """What the devices of each arm cost; an arm without an entry has no price."""
    draft_flops_ratio: float | None = None
    """Operations of a draft position ÷ a target position, where the cost model counts none; else None."""
    slo: Mapping[str, float] = field(default_factory=dict)
    """Service objectives such as ``{"p99_ttft_ms": 200}``."""
    show_estimated_energy: bool = False
    """Show joules although they rest on guessed watts, whatever their share."""

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row a request and arm."""
        return self.tables.requests.frame()

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a prefill pass or round of the batch; joules are NaN where they are withheld."""
        return self.step_table.frame()

    @cached_property
    def prompts(self) -> pd.DataFrame:
        """One row a prompt and arm: what every mean and rate is a ratio of."""
        return self.prompt_table.frame()

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row a round of one request."""
        return self.tables.rounds.frame()

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Return all tables as DataFrames by name: ``requests``, ``prompts``, ``steps``, ``rounds``."""
        return {
            "requests": self.requests,
            "prompts": self.prompts,
            "steps": self.steps,
            "rounds": self.rounds,
        }

    def plot(self) -> Figure:
        """Return one figure with every plot that the run allows; nothing is shown or written."""
        return cast("Figure", import_module(_FIGURES).figure_of(self))

    def __repr__(self) -> str:
        """Return the name, the key and the verdict: the rest is too long to read."""
        return f"<SimulationResult {self.key[:12]}: {self.summary()['verdict']['text']}>"

    def _repr_html_(self) -> str:
        return cast(str, import_module(_NOTEBOOK).cell_html(self))

    @property
    def step_table(self) -> Table:
        """The steps, without the joules where they are withheld."""
        if self.is_energy_withheld:
            return self.tables.steps.filled(math.nan, *_JOULES)
        is_floor_withheld = self.provenance.device_energy_is_estimated and not self.show_estimated_energy
        return (
            self.tables.steps.filled(math.nan, "device_limit_j") if is_floor_withheld else self.tables.steps
        )

    @cached_property
    def is_energy_withheld(self) -> bool:
        """Joules rest too much on guessed watts and were not asked for."""
        if not self.provenance.power_is_estimated or self.show_estimated_energy:
            return False
        return not all(is_shown(share) for share in self._guessed_energy_fractions.values())

    @cached_property
    def _guessed_energy_fractions(self) -> dict[str, float]:
        """Share of the joules of each arm that guessed watts contribute."""
        return {name: guessed_energy_fraction(self._arm_of(name, self.tables.steps)) for name in self._names}

    @property
    def has_speculation(self) -> bool:
        """The scenario speculates, so there are two arms."""
        return len(self.tables.requests.labels("arm").rows("speculation")) > 0

    def arm(self, name: str) -> ArmTables:
        """Tables of one arm, ``baseline`` or ``speculation``, without the joules where they are withheld."""
        arm = self._arm_of(name, self.step_table)
        return replace(arm, idle_power_w=math.nan) if self.is_energy_withheld else arm

    def _arm_of(self, name: str, steps: Table) -> ArmTables:
        return ArmTables(
            self.tables.requests.where("arm", name),
            steps.where("arm", name),
            self.tables.rounds.where("arm", name),
            self.idle_power_w[name],
            self.guessed_idle_power_w.get(name, 0.0),
            self.tariffs.get(name, Tariff()),
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return ("baseline", "speculation") if self.has_speculation else ("baseline",)

    @cached_property
    def _arms(self) -> dict[str, ArmTables]:
        return {name: self.arm(name) for name in self._names}

    @cached_property
    def _sums(self) -> dict[str, Sums]:
        """Of each arm by prompt, [prompts]."""
        return {
            name: prompt_sums(arm, slo=self.slo, draft_flops_ratio=self.draft_flops_ratio)
            for name, arm in self._arms.items()
        }

    @cached_property
    def prompt_table(self) -> Table:
        """What every mean and rate is a ratio of, one row a prompt and arm."""
        numbers = [prompt_numbers(arm) for arm in self._arms.values()]
        arms = [Labels.constant(name, len(rows)) for name, rows in zip(self._arms, numbers, strict=True)]
        sums = {
            name: np.concatenate([arm[name] for arm in self._sums.values()])
            for name in self._sums["baseline"]
        }
        return Table(PROMPTS, {"arm": Labels.stacked(arms), "prompt": np.concatenate(numbers), **sums})

    def summary(self) -> Summary:
        """Verdict, metrics, speed-ups and intervals under the keys of ``summary.json``; JSON-ready."""
        return copy.deepcopy(self._summary)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """How wide to read the result, and what it does not cover."""
        return (*readings(self.provenance), *self._limitations)

    @cached_property
    def _limitations(self) -> list[Caveat]:
        baseline, speculation = self._metrics
        return limitations(
            self.provenance,
            num_prompts=self._comparison.num_prompts,
            num_requests=len(self._arms["baseline"].requests),
            num_censored=int(list(self._arms.values())[-1].rounds.bools("is_censored").sum()),
            is_energy_shown=_has_joules(baseline),
            guessed_fraction=max(self._guessed_energy_fractions.values()),
            is_cost_known=number(speculation or baseline, "usd_per_mtok") is not None,
        )

    @cached_property
    def _comparison(self) -> ArmComparison:
        return ArmComparison.of(list(self._sums.values()), RandomStreams(self.seed))

    @cached_property
    def _metrics(self) -> tuple[Metrics, Metrics | None]:
        """Of the baseline, and of speculation where there is any."""
        arms, sums = list(self._arms.values()), list(self._sums.values())
        baseline, *others = [
            _without_nan(
                arm_metrics(
                    arm,
                    arm_sums,
                    slo=self.slo,
                    draft_flops_ratio=self.draft_flops_ratio,
                    method=self._measurement_method(),
                    guessed_energy_fraction=self._guessed_energy_fractions[name],
                )
            )
            for (name, arm), arm_sums in zip(self._arms.items(), sums, strict=True)
        ]
        if not others:
            return baseline, None
        speculation = others[0] | acceptance_metrics(
            arms[1], sums[1], num_speculative_tokens=self.num_speculative_tokens
        )
        speculation["operations_factor"] = self._comparison.operations_factor()
        speculation["wasted_positions_per_token"] = self._comparison.wasted_positions_per_token()
        return baseline, speculation

    @cached_property
    def _summary(self) -> Summary:
        baseline, speculation = self._metrics
        speedup = None if speculation is None else self._comparison.speedup()
        summary: Summary = {
            "schema_version": SCHEMA_VERSION,
            "specsim_version": self.provenance.specsim_version,
            "seed": self.seed,
            "key": self.key,
            "scenario": self.scenario.model_dump(mode="json"),
            "provenance": _provenance(self.provenance),
            "verdict": verdict(
                baseline, speculation, speedup, self.provenance, is_energy_shown=_has_joules(baseline)
            ),
            "baseline": baseline,
            "speculation": speculation,
            "speedup": speedup,
            "intervals": self._comparison.intervals(),
            "how_to_read": " ".join(caveat.text for caveat in readings(self.provenance)),
            "known_limitations": [caveat.text for caveat in self._limitations],
            "definitions": dict(DEFINITIONS),
        }
        return cast(Summary, json_ready(cast(JsonValue, summary)))

    def _measurement_method(self) -> str:
        is_in_part = all(is_shown(share) for share in self._guessed_energy_fractions.values())
        watts = ", watts estimated in part" if is_in_part else ", estimated watts"
        power = watts if self.provenance.power_is_estimated else ""
        return f"simulated from {self.provenance.profile_kind} profile {self.provenance.profile}{power}"


def _has_joules(metrics: Metrics) -> bool:
    return number(metrics, "total_energy_joules") is not None


def _without_nan(metrics: Metrics) -> Metrics:
    return cast(Metrics, json_ready(cast(JsonValue, metrics)))


def _provenance(provenance: Provenance) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = asdict(provenance)
    del fields["specsim_version"]
    return fields | {"notes": list(provenance.notes), "guessed_watts": list(provenance.guessed_watts)}
