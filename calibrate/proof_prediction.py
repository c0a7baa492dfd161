"""The predicting half of the proof on a CPU: measured cells to a profile, and simulations on it.

Cells left out decide the kind of profile: the law of ``roofline``, or a ``table`` of the medians. A CPU's
library changes from matrix-vector to matrix-matrix kernels at the second position, a jump that no smooth law
follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrate.fit import fit_time
from calibrate.proof_runs import DRAFTS, ProofData, Records, Run
from calibrate.rows import trace_of
from calibrate.select import Choice
from specsim.arrays import PICOSECONDS_PER_SECOND, Floats, Ints
from specsim.config import parse, validate
from specsim.engine.simulate import simulate
from specsim.hardware import Accelerator, CostModel, ModelSpec, RooflineProfile, StepShape, TableProfile
from specsim.results.result import SimulationResult
from specsim.scenario import load_scenario
from specsim.speculation.trace import Trace
from specsim.streams import Purpose, RandomStreams

_US = 1e-6
_ONE_CORE = RooflineProfile.model_validate(
    {
        "name": "this-cpu",
        # More than one core of a server draws from its memory or computes in 32 bits: bounds of a fit.
        "memory": {"bandwidth_bytes_per_s": 25e9, "capacity_bytes": 16e9},
        "peak_flops_per_s": {"float32": 100e9},
        "efficiency": {"memory": 0.5, "compute": 0.5},
        "overhead": {"step_s": 1e-3, "layer_s": 1e-4, "smooth_exponent": 2.0},
    }
)
_NUM_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Comparison:
    """Measured and predicted at one number of speculative tokens."""

    draft: str
    num_speculative_tokens: int
    measured_s: float
    """CPU time a token after the first, s."""
    measured_speedup: float
    interval: tuple[float, float]
    """95 % interval of the measured speed-up, resampling prompts."""
    measured_length: float
    """Tokens a round."""
    simulated_s: float
    """Time a token after the first, simulated on the recorded traces, s."""
    simulated_speedup: float
    simulated_length: float
    costed_speedup: float
    """Speed-up of the very rounds that ran, at the profile's cost: what is left is the cost model's error."""

    @property
    def simulated_error(self) -> float:
        """Simulated over measured speed-up, less 1."""
        return self.simulated_speedup / self.measured_speedup - 1.0

    @property
    def costed_error(self) -> float:
        """Speed-up of the rounds that ran over the measured one, less 1."""
        return self.costed_speedup / self.measured_speedup - 1.0


@dataclass(frozen=True, slots=True)
class MachineFit:
    """A profile of the machine, and how both kinds do on its cells."""

    profile: Accelerator
    """Of the kind that predicts cells left out better."""
    choice: Choice
    """Errors on cells left out."""
    roofline_ratios: Mapping[int, float]
    """Median of the law's over the measured time, by positions: where a smooth law misses the cells."""


def fit_machine(data: ProofData) -> MachineFit:
    """Fit the machine's cells, and choose the kind of profile by cross-validation."""
    import pandas as pd

    # No fit may read the wall clock of a shared machine as launches.
    table = pd.DataFrame(data.cells).drop(columns="t_wall_us", errors="ignore")
    steps = trace_of(table, file="cells", header={"device": "this-cpu"}).steps
    assert steps is not None
    fitted = fit_time(steps, _ONE_CORE, with_intervals=False)
    assert fitted.choice is not None
    ratios, positions = np.exp(fitted.log_residuals), fitted.cells.num_positions
    return MachineFit(
        profile=table_profile(data) if fitted.choice.prefers_table else fitted.profile,
        choice=fitted.choice,
        roofline_ratios={
            int(each): float(np.median(ratios[positions == each])) for each in np.unique(positions)
        },
    )


def table_profile(data: ProofData) -> TableProfile:
    """Profile of the machine: a grid for the target and one for the early exit, medians of all blocks."""
    specs = {role: _spec(text) for role, text in data.models.items()}
    texts = {str(record["model"]) for record in data.cells}
    grids = []
    for spec in specs.values():
        (text,) = (one for one in texts if one == spec.name or f'"{spec.name}"' in one)
        grids.append(_grid(spec, [record for record in data.cells if record["model"] == text]))
    return TableProfile.model_validate({"kind": "table", "name": "this-cpu", "grids": grids})


def compare(data: ProofData, profile: Accelerator, traces: Path) -> list[Comparison]:
    """Compare what was measured with what a profile predicts.

    Parameters
    ----------
    data
        What was measured.
    profile
        The machine.
    traces
        Folder of ``lookup.npz`` and ``exit.npz``, recorded on the same prompts.
    """
    specs = {role: _spec(text) for role, text in data.models.items()}
    target = profile.cost_model(specs["target"], weight_dtype="float32")
    shallow = profile.cost_model(specs["exit"], weight_dtype="float32")
    found = []
    for draft in DRAFTS:
        by_count = _by_count(data.runs, draft)
        baseline = by_count[0]
        base_s, base_cost_s = _per_token(baseline), _costed(baseline, target, None)
        draft_cost = shallow if draft == "exit" else None
        for count, runs in by_count.items():
            simulated_s, plain_s, length = _simulated(draft, count, profile, specs, data, traces)
            found.append(
                Comparison(
                    draft=draft,
                    num_speculative_tokens=count,
                    measured_s=_per_token(runs),
                    measured_speedup=base_s / _per_token(runs),
                    interval=_interval(baseline, runs),
                    measured_length=_length(runs),
                    simulated_s=simulated_s,
                    simulated_speedup=plain_s / simulated_s,
                    simulated_length=length,
                    costed_speedup=base_cost_s / _costed(runs, target, draft_cost),
                )
            )
    return found


def _spec(text: str) -> ModelSpec:
    return validate(ModelSpec, parse(text, file="model"))


def _grid(spec: ModelSpec, records: Records) -> dict[str, object]:
    positions = sorted({int(record["positions"]) for record in records})
    contexts = sorted({int(record["ctx"]) for record in records})
    times: dict[tuple[int, int], list[float]] = {}
    for record in records:
        key = (int(record["positions"]), int(record["ctx"]))
        times.setdefault(key, []).append(float(record["t_gpu_us"]) * _US)
    return {
        "model": spec.name,
        "dtype": "float32",
        "num_positions": positions,
        "context_tokens": contexts,
        "step_s": [float(np.median(times[each, context])) for each in positions for context in contexts],
    }


def _by_count(runs: Sequence[Run], draft: str) -> dict[int, list[Run]]:
    chosen = [run for run in runs if run.draft == draft and run.num_tokens > 1]
    counts = sorted({run.num_speculative_tokens for run in chosen})
    return {count: [run for run in chosen if run.num_speculative_tokens == count] for count in counts}


def _per_token(runs: Sequence[Run]) -> float:
    return sum(run.decode_s for run in runs) / sum(run.num_tokens - 1 for run in runs)


def _length(runs: Sequence[Run]) -> float:
    return sum(sum(run.num_emitted) for run in runs) / sum(len(run.num_emitted) for run in runs)


def _interval(baseline: Sequence[Run], runs: Sequence[Run]) -> tuple[float, float]:
    """Bootstrap over prompts of a ratio of ratios of sums; prompts are paired."""
    prompts = sorted({run.prompt for run in baseline} & {run.prompt for run in runs})

    def sums(given: Sequence[Run]) -> tuple[Floats, Floats]:
        each = {run.prompt: run for run in given}
        return (
            np.array([each[prompt].decode_s for prompt in prompts]),
            np.array([each[prompt].num_tokens - 1.0 for prompt in prompts]),
        )

    generator = RandomStreams(0).generator(Purpose.BOOTSTRAP)
    drawn = generator.integers(len(prompts), size=(_NUM_RESAMPLES, len(prompts)))
    (base_s, base_tokens), (time_s, tokens) = sums(baseline), sums(runs)
    plain = base_s[drawn].sum(1) / base_tokens[drawn].sum(1)
    speedup = plain / (time_s[drawn].sum(1) / tokens[drawn].sum(1))
    low, high = np.percentile(speedup, [2.5, 97.5])
    return float(low), float(high)


def _costed(runs: Sequence[Run], target: CostModel, draft: CostModel | None) -> float:
    """Time a token of the rounds that ran, at a profile's cost, s."""
    drafted = np.array([count for run in runs for count in run.num_drafted], dtype=np.int64)
    context = np.array([tokens for run in runs for tokens in run.context_tokens], dtype=np.int64)
    total_s = _cost_s(target, drafted + 1, context)
    if draft is not None:
        for passes in range(int(drafted.max(initial=0))):
            drafting = drafted > passes
            total_s += _cost_s(draft, np.ones_like(drafted[drafting]), context[drafting] + passes)
    return total_s / sum(run.num_tokens - 1 for run in runs)


def _cost_s(costs: CostModel, positions: Ints, context: Ints) -> float:
    if not len(positions):
        return 0.0
    shape = StepShape(
        num_sequences=np.ones_like(positions),
        num_positions=positions,
        num_prefill_positions=np.zeros_like(positions),
        num_logit_positions=positions,
        context_tokens=context,
        position_context=positions * context,
    )
    return float(costs.steps(shape).duration_ps.sum()) / PICOSECONDS_PER_SECOND


def _simulated(
    draft: str,
    count: int,
    profile: Accelerator,
    specs: Mapping[str, ModelSpec],
    data: ProofData,
    traces: Path,
) -> tuple[float, float, float]:
    """Return time a token with and without speculation, s, and tokens a round, simulated."""
    is_lookup = draft == "lookup"
    speculative = {
        "method": "ngram" if is_lookup else "early_exit",
        "num_speculative_tokens": count,
        "draft_sample_method": "greedy" if is_lookup else "probabilistic",
        **({} if is_lookup else {"model": specs["exit"].model_dump(mode="json"), "quantization": "float32"}),
    }
    trace = traces / f"{draft}.npz"
    scenario = {
        "name": f"{draft}-{count}",
        "target": {"model": specs["target"].model_dump(mode="json"), "dtype": "float32"},
        "speculative_config": speculative,
        "distributions": {"kind": "trace", "path": str(trace)},
        "hardware": {"target": profile.model_dump(mode="json")},
        "workload": {
            "num_prompts": Trace.load(trace).num_prompts,
            "max_concurrency": 1,
            "output_tokens": int(data.facts["max_tokens"]),
        },
    }
    result = simulate(load_scenario(json.dumps(scenario, indent=1)))
    rounds = result.rounds[result.rounds["arm"] == "speculation"]
    length = float(rounds["num_emitted"].mean())
    plain_s, drafted_s = (_token_s(result, arm) for arm in ("baseline", "speculation"))
    return drafted_s, plain_s, length


def _token_s(result: SimulationResult, arm: str) -> float:
    """Time a token after the first, as sums over requests, s."""
    rows = result.requests[result.requests["arm"] == arm]
    decode_s = float((rows["finish_s"] - rows["first_token_s"]).sum())
    return decode_s / float((rows["num_output_tokens"] - 1).sum())
