"""How fast specsim is: printed beside a reference in the same run, never a test of time.

The reference is a loop of SimPy timeouts, one event a step, which any event-driven simulator pays at least.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator

import pytest
import simpy

pytestmark = pytest.mark.benchmark

PAIR = """\
target: {model: llama-3.1-8b}
speculative_config: {model: llama-3.2-1b, num_speculative_tokens: 4, draft_sample_method: probabilistic}
distributions: {kind: rates, acceptance_rate: 0.7}
hardware: {target: h100-sxm}
"""
_EXPLICIT = "distributions={kind: explicit, target: [.5, .3, .2], draft: [.2, .3, .5]}"
_LOAD = "workload: {num_prompts: %d, max_concurrency: %d, prompt_tokens: 512, output_tokens: %d%s}"
LOADS = {
    "one request": _LOAD % (1, 1, 100_000, ""),
    "batch of 64": _LOAD % (1280, 64, 256, ""),
    "batch of 64, lengths vary": _LOAD
    % (1280, 64, 256, ", prompt_tokens_stdev: 128, output_tokens_stdev: 64"),
    "one request, explicit p and q": _LOAD % (1, 1, 20_000, ""),
}


def events_per_s(num_events: int = 200_000) -> float:
    """Timeouts a second of a bare SimPy process: the reference."""

    def tick(env: simpy.Environment) -> Generator[simpy.Event, None, None]:
        for _ in range(num_events):
            yield env.timeout(1)

    env = simpy.Environment()
    env.process(tick(env))
    began = time.perf_counter()
    env.run()
    return num_events / (time.perf_counter() - began)


@pytest.mark.parametrize("load", LOADS)
def test_output_tokens_a_second(load: str) -> None:
    from specsim.config import parse
    from specsim.engine.simulate import simulate
    from specsim.scenario import scenario_of

    overrides = [_EXPLICIT] if "explicit" in load else []
    scenario = scenario_of(parse(PAIR + LOADS[load]), overrides=overrides)
    simulate(scenario)
    reference = events_per_s()
    began = time.perf_counter()
    result = simulate(scenario)
    elapsed_s = time.perf_counter() - began
    tokens = int(result.tables.requests.ints("num_output_tokens").sum())
    rate = tokens / elapsed_s
    print(
        f"\n{load}: {rate:,.0f} output tokens/s, both arms counted; "
        f"{rate / reference:.2f} x the {reference:,.0f} events/s of bare SimPy"
    )


def test_processor_time_of_help_and_time_of_the_quickstart() -> None:
    for words in (["--help"], ["run"]):
        began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(
            [sys.executable, "-c", "from specsim.cli.app import main; main()", *words],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        cpu_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used
        print(f"\nspecsim {' '.join(words)}: {cpu_s:.2f} s of CPU, {time.perf_counter() - began:.2f} s")


def test_memory_of_a_million_tokens() -> None:
    code = (
        "import resource\n"
        "from specsim.config import parse\nfrom specsim.scenario import scenario_of\n"
        "from specsim.engine.simulate import simulate\n"
        f"scenario = scenario_of(parse({PAIR + LOADS['one request']!r}, file='x'),"
        " overrides=['workload.output_tokens=500000', 'hardware.target.memory.capacity_bytes=1e15'])\n"
        "result = simulate(scenario)\nresult.summary()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=dict(os.environ)
    )
    print(f"\na million tokens, half of them in each arm, one request: {done.stdout.strip()} MB at most")
