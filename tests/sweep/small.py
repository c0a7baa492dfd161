"""A scenario that takes milliseconds, and the axes that tests vary."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

SMALL = """\
name: small
hardware: {target: {kind: unit, name: unit, target_step_s: 1.0, draft_cost_ratio: 0.1}}
distributions: {kind: rates, acceptance_rate: 0.7}
speculative_config: {num_speculative_tokens: 2}
workload: {num_prompts: 6, max_concurrency: 2, prompt_tokens: 4, output_tokens: 30}
"""
RATES = "distributions.acceptance_rate=0.2,0.5,0.8"


class Refusing(Executor):
    """Fails the test if anything is simulated."""

    def submit(self, function: Callable[..., object], /, *args: object, **kwargs: object) -> Future:
        raise AssertionError("nothing should be simulated")
