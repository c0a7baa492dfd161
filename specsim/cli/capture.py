"""``specsim calibrate capture``: measure the machine at hand, and write a trace to calibrate with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from specsim.cli.language_models import Device, Dtype, refuse_missing_libraries

_LIBRARIES = ("torch", "transformers")


def capture(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Models to measure, two of unlike size at best: a preset or config.json (random weights), "
            "a Hugging Face directory or a .gguf file."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Trace to write: .csv, .jsonl or .parquet.")],
    device: Annotated[Device, typer.Option(help="Where the models run.")] = Device.auto,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Format of the weights; bfloat16 on a GPU, float32 on a CPU.")
    ] = None,
    graphs: Annotated[
        bool, typer.Option("--graphs/--no-graphs", help="Replay each step as a CUDA graph, on a GPU.")
    ] = True,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the arithmetic on a CPU.")] = 1,
    warmups: Annotated[int, typer.Option(min=0, help="Steps before the measured ones.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Visits of every cell.")] = 30,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps of a visit.")] = 1,
    max_positions: Annotated[int, typer.Option(min=1, help="Leave out cells of more positions.")] = 1024,
    max_cached_tokens: Annotated[
        int, typer.Option(min=1, help="Leave out cells of more cached tokens over all sequences.")
    ] = 65536,
    energy_window: Annotated[
        float, typer.Option(min=0.1, help="Seconds over which the energy of a cell is counted.")
    ] = 5.0,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 0,
) -> None:
    """Measure steps of models on this machine: positions, batches and contexts in random order.

    A capture that was killed goes on where it stopped: what is measured is kept beside the output until
    all is there. Nothing is downloaded.
    """
    refuse_missing_libraries(_LIBRARIES, purpose="capture")
    from calibrate.capture import CaptureSettings, check_output, idle_record
    from calibrate.capture import capture as capture_trace
    from calibrate.design import design
    from calibrate.energy_meter import find_meter
    from calibrate.machine import machine_facts
    from specsim.recording.step_bench import load_bench, use_threads

    check_output(output)
    settings = CaptureSettings(
        num_warmups=warmups, num_repeats=repeats, num_steps=steps, energy_window_s=energy_window, seed=seed
    )
    cells = design(max_positions=max_positions, max_cached_tokens=max_cached_tokens)
    kind = use_threads(threads, device.value)
    meter, energy = find_meter(kind)
    idle = None if meter is None else idle_record("idle", energy_window, meter)
    usual = Dtype.bfloat16 if kind == "cuda" else Dtype.float32
    chosen: Dtype = dtype or usual
    uses_graphs = graphs and kind == "cuda"
    benches = [
        load_bench(model, device=kind, dtype=chosen.value, uses_graphs=uses_graphs) for model in models
    ]
    if meter is None:
        print(f"specsim: {energy}", file=sys.stderr)
    facts = {
        **machine_facts(benches[0].gpu, threads=threads),
        "energy": energy,
        "graphs": "yes" if uses_graphs else "no",
    }
    with _progress() as on_cell:
        path = capture_trace(
            benches, cells, settings, output, facts=facts, meter=meter, idle=idle, on_cell=on_cell
        )
    typer.echo(f"{path}: {len(cells)} cells of {len(models)} models, {repeats} repeats")


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Visits done, on stderr, where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from specsim.cli.progress import ProgressLine

    line = ProgressLine("visits")
    try:
        yield line.update
    finally:
        line.close()
