"""The unit profile: costs as shares of one target step."""

import pytest
from pydantic import ValidationError

from specsim.errors import DomainError
from specsim.hardware.accelerator import Placement
from specsim.hardware.unit import UnitProfile


@pytest.mark.parametrize("step_s", [1e-300, 1e-10])
def test_a_step_that_the_clock_would_round_away_is_refused(step_s: float) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to"):
        UnitProfile(kind="unit", name="u", target_step_s=step_s, draft_cost_ratio=0)


def test_a_draft_pass_that_the_clock_would_round_away_is_refused() -> None:
    profile = UnitProfile(kind="unit", name="u", target_step_s=1e-8, draft_cost_ratio=1e-3)
    with pytest.raises(DomainError, match="draft pass of 1e-11 s"):
        profile.build(None, Placement(role="draft"))


def test_a_free_draft_costs_nothing() -> None:
    profile = UnitProfile(kind="unit", name="u", target_step_s=1e-9, draft_cost_ratio=0)
    profile.build(None, Placement(role="draft"))
