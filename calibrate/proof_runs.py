"""The measuring half of the proof on a CPU: cells and real speculative decoding, interleaved.

A block measures every cell once and decodes its prompts once for every number of speculative tokens, each
in random order, so that what is compared later met the same machine. Time is CPU time of the one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from calibrate.capture import CaptureSettings, measure_cell
from calibrate.design import grid, shuffled
from calibrate.machine import machine_facts
from specsim.config.base import Spec
from specsim.hardware import ModelSpec
from specsim.streams import Purpose, RandomStreams

DRAFTS = ("lookup", "exit")
"""What drafts: prompt lookup, and the target's own first layers."""
TARGET = "smollm2-135m"

_POSITIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 256)
_CONTEXTS = (0, 128, 384)

Records: TypeAlias = list[dict[str, str | int | float]]


class ProofSettings(Spec):
    """What the proof measures."""

    domains: tuple[str, ...] = ("chat", "code", "documentation")
    """Shipped prompt sets; each is one block."""
    prompts_per_domain: int = Field(default=2, ge=1)
    """Prompts of each, decoded with lookup."""
    exit_prompts_per_domain: int = Field(default=1, ge=1)
    """Prompts of each, decoded with the early exit, which takes longer."""
    max_tokens: int = Field(default=40, ge=2)
    """Tokens of a continuation."""
    lengths: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)
    """Numbers of speculative tokens."""
    exit_layers: int = Field(default=24, ge=1)
    """Layers of the early exit."""
    temperature: float = Field(default=0.7, ge=0)
    """Of target and draft."""
    seed: int = Field(default=0, ge=0)
    """Of orders and luck."""


@dataclass(frozen=True, slots=True)
class Run:
    """One prompt decoded once."""

    draft: str
    num_speculative_tokens: int
    prompt: int
    num_tokens: int
    decode_s: float
    """CPU time from the first token to the last, s."""
    num_drafted: list[int]
    num_emitted: list[int]
    context_tokens: list[int]


@dataclass(frozen=True, slots=True)
class ProofData:
    """All that was measured."""

    facts: dict[str, str]
    models: dict[str, str]
    """Shape of target and early exit as JSON, by role."""
    cells: Records
    runs: list[Run]

    def as_json(self) -> dict[str, object]:
        """Return everything as plain values."""
        return asdict(self)


def measure(
    model: Path, settings: ProofSettings, traces: Path, *, on_progress: Callable[[str], None]
) -> ProofData:
    """Measure the machine, record the traces to simulate with, and decode for real.

    Parameters
    ----------
    model
        SmolLM2-135M: a Hugging Face directory or a ``.gguf`` file.
    settings
        What is measured.
    traces
        Folder for the recorded traces, ``lookup.npz`` and ``exit.npz``.
    on_progress
        Told what comes next.
    """
    from specsim.recording import (
        PromptLookup,
        RecordingSettings,
        early_exit,
        load_language_model,
        load_prompt_set,
        record,
    )
    from specsim.recording.decode import Drafter, LookupDrafter, NetworkDrafter, decode
    from specsim.recording.step_bench import NetworkBench, use_threads
    from specsim.recording.warp import Warp

    use_threads(1, "cpu")
    warp = Warp(settings.temperature)
    target = load_language_model(model, device="cpu")
    lookup = PromptLookup(num_proposed=max(settings.lengths))
    shallow = early_exit(target, settings.exit_layers, warp)
    shape = {**target.network.config.get_text_config().to_dict(), "name": TARGET}
    spec = ModelSpec.model_validate(shape)
    exit_spec = spec.model_copy(
        update={"name": f"{TARGET}-exit{settings.exit_layers}", "num_hidden_layers": settings.exit_layers}
    )
    benches = [
        NetworkBench(target.network, spec, dtype="float32", warp=warp),
        NetworkBench(shallow.network, exit_spec, dtype="float32", warp=warp),
    ]
    drafters: dict[str, Drafter] = {
        "lookup": LookupDrafter(lookup),
        "exit": NetworkDrafter(shallow.network, warp),
    }
    on_progress("recording traces")
    sets = [
        one.model_copy(update={"prompts": one.prompts[: settings.prompts_per_domain]})
        for one in map(load_prompt_set, settings.domains)
    ]
    recording = RecordingSettings(
        temperature=settings.temperature, max_tokens=settings.max_tokens, seed=settings.seed
    )
    traces.mkdir(parents=True, exist_ok=True)
    for name, trace in zip(DRAFTS, record(target, [lookup, shallow], sets, recording), strict=True):
        trace.save(traces / f"{name}.npz")

    streams = RandomStreams(settings.seed)
    once = CaptureSettings(num_warmups=0, num_repeats=1)
    plan = grid(_POSITIONS, _CONTEXTS)
    cells: Records = []
    runs: list[Run] = []
    for block, prompt_set in enumerate(sets):
        prompts = [target.encode(text, style=prompt_set.style).tolist() for text in prompt_set.prompts]
        for is_kept in (False, True) if block == 0 else (True,):
            on_progress(f"block {block + 1} of {len(sets)}: cells" + ("" if is_kept else ", warming up"))
            for cell in shuffled(plan, streams, repeat=block):
                measured = [dict(measure_cell(bench, cell, block, once, None)) for bench in benches]
                cells += measured if is_kept else []
        for draft, count in _order(settings, streams, block):
            on_progress(f"block {block + 1} of {len(sets)}: {draft}, {count} speculative tokens")
            few = settings.exit_prompts_per_domain
            for number, prompt in enumerate(prompts[:few] if draft == "exit" else prompts):
                place = block * settings.prompts_per_domain + number
                decoded = decode(
                    target.network,
                    drafters[draft],
                    prompt,
                    num_speculative_tokens=count,
                    max_tokens=settings.max_tokens,
                    warp=warp,
                    end_tokens=target.end_tokens,
                    luck=streams.generator(Purpose.DRAFT, place, count, DRAFTS.index(draft)),
                )
                runs.append(
                    Run(
                        draft=draft,
                        num_speculative_tokens=count,
                        prompt=place,
                        num_tokens=len(decoded.tokens),
                        decode_s=decoded.decode_s,
                        num_drafted=decoded.num_drafted,
                        num_emitted=decoded.num_emitted,
                        context_tokens=decoded.context_tokens,
                    )
                )
    facts = {**machine_facts(None, threads=1), **{key: str(value) for key, value in settings}}
    models = {"target": spec.model_dump_json(), "exit": exit_spec.model_dump_json()}
    return ProofData(facts, models, cells, runs)


def _order(settings: ProofSettings, streams: RandomStreams, block: int) -> Sequence[tuple[str, int]]:
    pairs = [(draft, count) for draft in DRAFTS for count in settings.lengths]
    order = streams.generator(Purpose.CAPTURE_ORDER, block, 1).permutation(len(pairs))
    return [pairs[index] for index in order.tolist()]
