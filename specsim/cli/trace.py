"""``specsim trace``: look into recorded traces, check them, put them together and take them apart."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specsim.errors import Fault
    from specsim.recording import DomainAcceptance
    from specsim.recording.summary import PromptRatio
    from specsim.speculation.trace import Trace

trace = typer.Typer(
    name="trace",
    help="Look into recorded traces: info, check, merge, slice, import.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

TraceFile = Annotated[Path, typer.Argument(help="A recorded trace (.npz).")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Trace to write.")]


class Axis(StrEnum):
    """What acceptance is told by."""

    position = "position"
    entropy = "entropy"


class LogFormat(StrEnum):
    """Who wrote a log of accepted lengths."""

    spec_bench = "spec-bench"
    vllm = "vllm"
    sglang = "sglang"
    csv = "csv"


@trace.command("info")
def info(
    file: TraceFile,
    num_speculative_tokens: Annotated[
        int, typer.Option("-k", "--num-speculative-tokens", help="The most that a round drafts.")
    ] = 4,
    by: Annotated[
        Axis | None,
        typer.Option(help="Show acceptance by output position or by the draft's entropy instead."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show where a trace comes from and the acceptance of each domain, with 95 % intervals over prompts."""
    from specsim.recording import acceptance_by_domain
    from specsim.speculation.trace import Trace

    loaded = Trace.load(file)
    if by is not None:
        _show_bins(loaded, by, as_json=as_json)
        return
    rows = acceptance_by_domain(loaded, num_speculative_tokens=num_speculative_tokens)
    if as_json:
        typer.echo(json.dumps(_as_json(loaded, rows), indent=2, allow_nan=False))
        return
    for name, value in loaded.header.model_dump(by_alias=True).items():
        typer.echo(f"{name}: {json.dumps(value) if isinstance(value, dict) else value}")
    typer.echo(
        f"\n{'domain':<16}{'prompts':>8}{'tokens':>8}{'cut':>5}{'proposes':>10}"
        f"  {'acceptance rate':<22}tokens a round at K={num_speculative_tokens}"
    )
    for row in rows:
        proposes = "-" if row.proposal_rate is None else f"{row.proposal_rate:.2f}"
        typer.echo(
            f"{row.domain:<16}{row.num_prompts:>8}{row.num_tokens:>8}{row.num_censored:>5}"
            f"{proposes:>10}  {_shown(row.acceptance_rate):<22}{_shown(row.tokens_per_round)}"
        )


@trace.command("check")
def check(files: Annotated[list[Path], typer.Argument(help="Recorded traces (.npz).")]) -> None:
    """Check that traces are whole and keep their invariants; all faults of all files at once."""
    from specsim.errors import ConfigError
    from specsim.speculation.trace import Trace

    faults: list[Fault] = []
    for file in files:
        try:
            loaded = Trace.load(file)
            typer.echo(f"{file}: OK, {loaded.num_prompts} prompts, {loaded.num_tokens} tokens")
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)


@trace.command("merge")
def merge(
    files: Annotated[list[Path], typer.Argument(help="Traces of the same models and temperature.")],
    output: Output,
) -> None:
    """Put the prompts of several traces end to end."""
    from specsim.speculation.trace import Trace
    from specsim.speculation.trace_prompts import concatenate

    merged = concatenate([Trace.load(file) for file in files])
    merged.save(output)
    typer.echo(f"{output}: {merged.num_prompts} prompts, {merged.num_tokens} tokens")


@trace.command("slice")
def slice_(
    file: TraceFile,
    output: Output,
    domain: Annotated[list[str] | None, typer.Option(help="Keep these domains; may be repeated.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="Keep these languages; may be repeated.")] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Keep this many prompts of what is left.")] = None,
) -> None:
    """Keep some prompts of a trace."""
    from specsim.errors import ConfigError
    from specsim.speculation.trace import Trace
    from specsim.speculation.trace_prompts import of_domain

    try:
        part = of_domain(Trace.load(file), domains=domain or (), languages=language or (), first=first)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    part.save(output)
    typer.echo(f"{output}: {part.num_prompts} prompts, {part.num_tokens} tokens")


@trace.command("import")
def import_(
    log: Annotated[Path, typer.Argument(help="A log of accepted lengths.")],
    output: Output,
    log_format: Annotated[LogFormat, typer.Option("--format", help="Who wrote it.")],
    target: Annotated[str, typer.Option(help="Name of the target model.")],
    draft: Annotated[str, typer.Option(help="Name of the draft.")],
    temperature: Annotated[float, typer.Option(help="Temperature of the target.")] = 0.0,
    num_speculative_tokens: Annotated[
        int | None,
        typer.Option("-k", "--num-speculative-tokens", help="Drafts of every round, if not logged."),
    ] = None,
    heuristic: Annotated[
        int | None, typer.Option(help="First length of transformers' heuristic, if lengths are not logged.")
    ] = None,
    prompt_tokens: Annotated[int | None, typer.Option(help="Length of the prompts, if not logged.")] = None,
    method: Annotated[str | None, typer.Option(help="Rows of this method of a csv only.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the order of rounds of which only counts are known.")] = 0,
) -> None:
    """Make a trace of a serving engine's log of accepted lengths; replayed at its own lengths it is exact."""
    from specsim.recording import LogSettings, read_log

    settings = LogSettings(
        target=target,
        draft=draft,
        temperature=temperature,
        num_speculative_tokens=num_speculative_tokens,
        heuristic_start=heuristic,
        num_prompt_tokens=prompt_tokens,
        method=method,
        seed=seed,
    )
    loaded = read_log(log, log_format=log_format.value, settings=settings)
    loaded.save(output)
    rounds = loaded.logged_rounds()
    typer.echo(
        f"{output}: {loaded.num_prompts} texts, {rounds.start.size} rounds, {loaded.num_tokens} tokens"
    )


def _show_bins(loaded: Trace, by: Axis, *, as_json: bool) -> None:
    from dataclasses import asdict

    from specsim.recording.breakdown import acceptance_by

    bins = acceptance_by(loaded, by.value)
    if as_json:
        unbounded = [asdict(one) | {"high": None if one.high == float("inf") else one.high} for one in bins]
        typer.echo(json.dumps({"by": by.value, "acceptance": unbounded}, indent=2, allow_nan=False))
        return
    unit = "tokens" if by is Axis.position else "nats"
    typer.echo(f"{by.value + ', ' + unit:<20}{'tokens':>8}  acceptance rate")
    for one in bins:
        typer.echo(f"{f'{one.low:g} to {one.high:g}':<20}{one.num_tokens:>8}  {one.acceptance_rate:.3f}")


def _shown(estimate: PromptRatio) -> str:
    if estimate.value is None:
        return "-"
    limits = estimate.interval
    return f"{estimate.value:.2f}" + ("" if limits is None else f" ({limits[0]:.2f} to {limits[1]:.2f})")


def _as_json(loaded: Trace, rows: list[DomainAcceptance]) -> dict[str, object]:
    from dataclasses import asdict

    return {"header": loaded.header.model_dump(by_alias=True), "acceptance": [asdict(row) for row in rows]}
