"""The measuring half of the proof on a CPU: cells and real speculative decoding, interleaved.

A block decodes its prompts once for every number of speculative tokens, in random order, and measures every
cell again and again in between, so that what is compared later met the same machine. Time is CPU time of the
one thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from pydantic import Field

from calibrate.capture import CaptureSettings, measure_cell
from calibrate.design import grid, shuffled
from calibrate.machine import machine_facts
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.hardware import ModelSpec
from specsim.streams import Purpose, RandomStreams

if TYPE_CHECKING:
    from specsim.recording import RecordedDraft

DRAFTS = ("lookup", "exit")
"""What drafts: prompt lookup, and the target's own first layers."""
TARGET = "smollm2-135m"

_POSITIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 256)
_MOST_DECODED = 9
"""More positions than this only prefill has; measured once a block."""
_CONTEXTS = (0, 128, 384)

Records: TypeAlias = list[dict[str, str | int | float]]


class ProofSettings(Spec):
    """What the proof measures."""

    domains: tuple[str, ...] = ("chat", "code", "documentation")
    """Shipped prompt sets; each is one block."""
    prompts_per_domain: int = Field(default=3, ge=1)
    """Prompts of each."""
    num_continuations: int = Field(default=8, ge=1)
    """Continuations of each prompt that are recorded to simulate with."""
    runs_per_pass: int = Field(default=3, ge=1)
    """Numbers of speculative tokens decoded between two passes over the cells."""
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

    def save(self, path: Path) -> None:
        """Write everything as JSON, whole or not at all."""
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self)), encoding="utf-8")
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read back what was saved."""
        given = json.loads(path.read_text(encoding="utf-8"))
        return cls(given["facts"], given["models"], given["cells"], [Run(**run) for run in given["runs"]])


def measure(
    model: Path, settings: ProofSettings, folder: Path, *, on_progress: Callable[[str], None]
) -> ProofData:
    """Measure the machine, record the traces to simulate with, and decode for real.

    Blocks that are done are kept in the folder, so that a measurement that was killed goes on.

    Parameters
    ----------
    model
        SmolLM2-135M: a Hugging Face directory or a ``.gguf`` file.
    settings
        What is measured.
    folder
        Where blocks are kept, and the recorded traces, ``lookup.npz`` and ``exit.npz``.
    on_progress
        Told what comes next.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = _facts(settings)
    kept = [folder / f"block-{block}.json" for block in range(len(settings.domains))]
    if not all(path.exists() for path in kept):
        rig = _Rig(model, settings, on_progress)
        rig.record(folder)
        for block, path in enumerate(kept):
            if not path.exists():
                rig.measure(block).save(path)
    parts = [ProofData.load(path) for path in kept]
    for path, part in zip(kept, parts, strict=True):
        if {key: part.facts.get(key) for key in wanted} != wanted:
            raise ConfigError(f"{path}: was measured with other settings; remove it to measure anew")
    return ProofData(
        parts[0].facts,
        parts[0].models,
        [cell for part in parts for cell in part.cells],
        [run for part in parts for run in part.runs],
    )


class _Rig:
    """The models in memory, and what is done with them."""

    def __init__(self, model: Path, settings: ProofSettings, on_progress: Callable[[str], None]) -> None:
        from specsim.recording import PromptLookup, early_exit, load_language_model, load_prompt_set
        from specsim.recording.decode import Drafter, LookupDrafter, NetworkDrafter
        from specsim.recording.step_bench import NetworkBench, use_threads
        from specsim.recording.warp import Warp

        use_threads(1, "cpu")
        self._settings, self._tell = settings, on_progress
        self._streams = RandomStreams(settings.seed)
        self._warp = Warp(settings.temperature)
        self._target = load_language_model(model, device="cpu")
        lookup = PromptLookup(num_proposed=max(settings.lengths))
        shallow = early_exit(self._target, settings.exit_layers, self._warp)
        self._drafts: list[RecordedDraft] = [lookup, shallow]
        self._drafters: dict[str, Drafter] = {
            "lookup": LookupDrafter(lookup),
            "exit": NetworkDrafter(shallow.network, self._warp),
        }
        shape = {**self._target.network.config.get_text_config().to_dict(), "name": TARGET}
        spec = ModelSpec.model_validate(shape)
        layers = settings.exit_layers
        exit_spec = spec.model_copy(update={"name": f"{TARGET}-exit{layers}", "num_hidden_layers": layers})
        self._models = {"target": spec.model_dump_json(), "exit": exit_spec.model_dump_json()}
        self._benches = [
            NetworkBench(network, shape, dtype="float32", warp=self._warp)
            for network, shape in ((self._target.network, spec), (shallow.network, exit_spec))
        ]
        self._sets = [
            one.model_copy(update={"prompts": one.prompts[: settings.prompts_per_domain]})
            for one in map(load_prompt_set, settings.domains)
        ]
        self._is_warm = False

    def record(self, folder: Path) -> None:
        """Record a trace of each draft on the prompts that are decoded, unless they are there."""
        from specsim.recording import RecordingSettings, record
        from specsim.speculation.trace_prompts import concatenate

        files = [folder / f"{name}.npz" for name in DRAFTS]
        if all(file.exists() for file in files):
            return
        self._tell("recording traces")
        settings = RecordingSettings(
            temperature=self._settings.temperature, max_tokens=self._settings.max_tokens
        )
        first = self._settings.seed
        recorded = [
            record(self._target, self._drafts, self._sets, settings.model_copy(update={"seed": seed}))
            for seed in range(first, first + self._settings.num_continuations)
        ]
        for file, traces in zip(files, zip(*recorded, strict=True), strict=True):
            concatenate(traces).save(file)

    def measure(self, block: int) -> ProofData:
        """Decode the prompts of one domain at every length of every draft, and measure cells in between."""
        where = f"block {block + 1} of {len(self._sets)}"
        chosen = self._sets[block]
        prompts = [self._target.encode(text, style=chosen.style).tolist() for text in chosen.prompts]
        order = _order(self._settings, self._streams, block)
        if not self._is_warm:
            self._tell(f"{where}: warming up")
            self._cells(0, most_positions=_MOST_DECODED)
            self._is_warm = True
        cells: Records = []
        runs: list[Run] = []
        for done, (draft, count) in enumerate(order):
            if done % self._settings.runs_per_pass == 0:
                self._tell(f"{where}: cells")
                most = _MOST_DECODED if done else max(_POSITIONS)
                cells += self._cells(block * len(order) + done, most_positions=most)
            self._tell(f"{where}: {draft}, {count} speculative tokens")
            for number, prompt in enumerate(prompts):
                place = block * self._settings.prompts_per_domain + number
                runs.append(self._decoded(draft, count, place, prompt))
        facts = {**machine_facts(None, threads=1), **_facts(self._settings)}
        return ProofData(facts, self._models, cells, runs)

    def _cells(self, repeat: int, *, most_positions: int) -> Records:
        once = CaptureSettings(num_warmups=0, num_repeats=1)
        positions = [each for each in _POSITIONS if each <= most_positions]
        return [
            dict(measure_cell(bench, cell, repeat, once, None))
            for cell in shuffled(grid(positions, _CONTEXTS), self._streams, repeat=repeat)
            for bench in self._benches
        ]

    def _decoded(self, draft: str, count: int, place: int, prompt: list[int]) -> Run:
        from specsim.recording.decode import decode

        found = decode(
            self._target.network,
            self._drafters[draft],
            prompt,
            num_speculative_tokens=count,
            max_tokens=self._settings.max_tokens,
            warp=self._warp,
            end_tokens=self._target.end_tokens,
            luck=self._streams.generator(Purpose.DRAFT, place, count, DRAFTS.index(draft)),
        )
        shapes = (found.num_drafted, found.num_emitted, found.context_tokens)
        return Run(draft, count, place, len(found.tokens), found.decode_s, *shapes)


def _facts(settings: ProofSettings) -> dict[str, str]:
    return {key: str(value) for key, value in settings}


def _order(settings: ProofSettings, streams: RandomStreams, block: int) -> Sequence[tuple[str, int]]:
    pairs = [(draft, count) for draft in DRAFTS for count in settings.lengths]
    order = streams.generator(Purpose.CAPTURE_ORDER, block, 1).permutation(len(pairs))
    return [pairs[index] for index in order.tolist()]
