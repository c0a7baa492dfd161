"""Steps below their physical limit are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specsim.errors import DomainError
from specsim.hardware import CostModel, Placement, StepCosts, StepShape, load_model, load_profile
from specsim.hardware.limited import LimitedCosts
from tests.hardware.shapes import decode

_MODEL = load_model("llama-3.2-1b")
_H100 = load_profile("h100-sxm.datasheet")


class _Scaled:
    """The costs of a profile with time and energy scaled."""

    def __init__(self, costs: CostModel, *, time: float = 1.0, energy: float = 1.0) -> None:
        self._costs = costs
        self._time = time
        self._energy = energy

    def steps(self, shape: StepShape) -> StepCosts:
        costs = self._costs.steps(shape)
        return replace(
            costs,
            duration_ps=np.rint(costs.duration_ps * self._time).astype(np.int64),
            energy_nj=np.rint(costs.energy_nj * self._energy).astype(np.int64),
        )


def _limited(*, time: float = 1.0, energy: float = 1.0) -> LimitedCosts:
    costs = _H100.place(_MODEL, Placement())
    return LimitedCosts(_Scaled(costs, time=time, energy=energy), name="scaled")


@given(
    sequences=st.integers(1, 64),
    positions=st.integers(1, 16),
    context=st.integers(0, 30_000),
    time=st.floats(0.05, 2.0),
    energy=st.floats(0.05, 2.0),
)
def test_a_step_is_refused_exactly_where_time_or_energy_is_below_its_limit(
    sequences: int, positions: int, context: int, time: float, energy: float
) -> None:
    shape = decode(sequences=sequences, positions=positions, context=context)
    costs = _Scaled(_H100.place(_MODEL, Placement()), time=time, energy=energy).steps(shape)
    is_possible = (
        costs.duration_ps[0] >= costs.limit_s[0] * 1e12 - 2
        and costs.energy_nj[0] >= costs.limit_j[0] * 1e9 - 2
    )
    limited = _limited(time=time, energy=energy)
    if is_possible:
        assert limited.steps(shape).duration_ps.tolist() == costs.duration_ps.tolist()
    else:
        with pytest.raises(DomainError, match="below its physical limit"):
            limited.steps(shape)


@pytest.mark.parametrize(
    ("changes", "unit"), [({"time": 0.3}, "s"), ({"energy": 0.3}, "J")], ids=["time", "energy"]
)
def test_the_refusal_gives_the_figures_of_the_step(changes: dict[str, float], unit: str) -> None:
    shape = decode(sequences=[1, 4], positions=[1, 5], context=[100, 2000])
    with pytest.raises(DomainError) as caught:
        _limited(**changes).steps(shape)
    costs = _H100.place(_MODEL, Placement()).steps(shape)
    limit = costs.limit_s[0] if unit == "s" else costs.limit_j[0]
    message = str(caught.value)
    assert message.startswith("profile 'scaled': a step of 1 sequence(s), 1 positions and 100 cached tokens")
    assert message.endswith(f" {unit}, below its physical limit of {limit:.4g} {unit}")


def test_costs_without_a_limit_are_never_refused() -> None:
    unit = load_profile("h100-sxm.datasheet").model_copy(update={"power": None}).place(_MODEL, Placement())
    costs = LimitedCosts(_Scaled(unit, energy=0.0), name="scaled").steps(decode(positions=[1, 5]))
    assert costs.energy_nj.tolist() == [0, 0]
