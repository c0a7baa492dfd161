"""Proof on the machine at hand: measure a CPU, predict real speculative decoding on it, and compare.

``python -m calibrate.cpu_proof MODEL`` (``make measure``) measures and writes a page and its figure. What
was measured stays in a folder, from which the page can be made again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from calibrate.proof_prediction import Comparison, MachineFit, compare, fit_machine
from calibrate.proof_runs import ProofData, ProofSettings, measure
from specsim.errors import SpecsimError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE = Path("docs/validation-cpu.md")
_DATA = Path(".benchmarks/validation-cpu")
_TOLERANCE = 0.10
_TITLES = {"lookup": "Prompt lookup", "exit": "Early exit"}
_COLORS = {"measured": "#0072B2", "simulated": "#D55E00"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure where nothing was measured yet, compare, and write the page.

    Returns
    -------
    int
        0 where every speed-up is simulated within 10 %, or else comes within 10 % once the rounds that ran
        are costed: then it lacked acceptance, not step times. 1 where one is not; 2 on bad input.
    """
    parser = argparse.ArgumentParser(prog="python -m calibrate.cpu_proof", description=__doc__)
    parser.add_argument("model", type=Path, help="SmolLM2-135M: a Hugging Face directory or a .gguf file")
    parser.add_argument("--data", type=Path, default=_DATA, help="folder of what was measured")
    parser.add_argument("-o", "--output", type=Path, default=PAGE, help="page to write")
    given = parser.parse_args(arguments)
    try:
        data = measure(given.model, ProofSettings(), given.data, on_progress=_progress)
        machine = fit_machine(data)
        comparisons = compare(data, machine.profile, given.data)
    except SpecsimError as error:
        print(f"specsim: {error}", file=sys.stderr)
        return error.exit_code
    given.output.write_text(
        page(data, machine, comparisons, figure=given.output.stem + ".svg"), encoding="utf-8"
    )
    _save_figure(comparisons, given.output.with_suffix(".svg"))
    print(table(comparisons))
    return int(any(not _is_close(one.costed_error) for one in _missed(comparisons)))


def _is_close(error: float) -> bool:
    return abs(error) <= _TOLERANCE


def _missed(comparisons: Sequence[Comparison]) -> list[Comparison]:
    return [one for one in comparisons if not _is_close(one.simulated_error)]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def table(comparisons: Sequence[Comparison]) -> str:
    """Return measured and predicted speed-ups as a Markdown table."""
    lines = [
        "| draft | K | tokens a round, measured | simulated | ms a token, measured | simulated"
        " | speed-up, measured (95 %) | simulated | error | same rounds, costed | error |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in comparisons:
        low, high = one.interval
        cells = [
            _TITLES[one.draft],
            str(one.num_speculative_tokens),
            f"{one.measured_length:.2f}",
            f"{one.simulated_length:.2f}",
            f"{one.measured_s * 1e3:.0f}",
            f"{one.simulated_s * 1e3:.0f}",
            f"{one.measured_speedup:.2f} ({low:.2f}–{high:.2f})",
            f"{one.simulated_speedup:.2f}",
            f"{one.simulated_error:+.1%}",
            f"{one.costed_speedup:.2f}",
            f"{one.costed_error:+.1%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page(data: ProofData, machine: MachineFit, comparisons: Sequence[Comparison], *, figure: str) -> str:
    """Return the page: what was done, what came out, what it does not show."""
    facts, kind = data.facts, machine.profile.kind
    drafted = [one for one in comparisons if one.num_speculative_tokens]
    tokens = {draft: sum(run.num_tokens - 1 for run in data.runs if run.draft == draft) for draft in _TITLES}
    paragraphs = [
        f"""Measured {facts["date"]} on {facts["device"]}, one thread ({facts["system"]}; {facts["engine"]}),
        by `make measure`. SmolLM2-135M in float32 decodes real text with exact speculative sampling at
        temperature {facts["temperature"]}; the draft is prompt lookup, or the model's own first
        {facts["exit_layers"]} of 30 layers. The same go measures {len(data.cells)} single steps of target and
        early exit, in random order and interleaved with the decoding. Everything is CPU time of the one
        thread.""",
        f"""Two predictions, both from the `{kind}` profile of those steps. **Simulated**: `specsim.simulate`
        on traces recorded from the same prompts. Text and luck differ from those of the real runs, so that
        its error holds the noise of both. **Same rounds, costed**: the rounds that really ran, at the
        profile's cost. What is left is the error of the cost model alone.""",
        f"![Measured and simulated speed-up by number of speculative tokens]({figure})",
        table(comparisons),
        _outcome(drafted),
        _kinds(machine),
        f"""Read it with care: {tokens["lookup"]} tokens were decoded with lookup and {tokens["exit"]} with
        the early exit, over all K, on a machine that others used as well. A single step varies by 10 to 20 %
        from one moment to the next; ratios of interleaved runs vary less. The best measured speed-up is
        {max(one.measured_speedup for one in drafted):.2f}. Energy was not measured.""",
    ]
    blocks = [one if one[0] in "!|" else _filled(one) for one in paragraphs]
    return "\n\n".join(["# Validation on a CPU", *blocks]) + "\n"


def _outcome(drafted: Sequence[Comparison]) -> str:
    """Say how many speed-ups were predicted, and what the others lack."""
    worst = max(drafted, key=lambda one: abs(one.simulated_error))
    worst_cost = max(drafted, key=lambda one: abs(one.costed_error))
    missed = _missed(drafted)
    num_costed = sum(_is_close(one.costed_error) for one in drafted)
    said = f"""Of {len(drafted)} speed-ups with drafts, {len(drafted) - len(missed)} are simulated within 10 %
    (worst {worst.simulated_error:+.1%}: {_named(worst)}); costing the same rounds, {num_costed} are (worst
    {worst_cost.costed_error:+.1%}: {_named(worst_cost)})."""
    for one in missed:
        lengths = f"{one.measured_length:.2f} tokens a round measured, {one.simulated_length:.2f} simulated"
        rest = f"costing the rounds that ran leaves {one.costed_error:+.1%}"
        lack = f"acceptance: {lengths}; {rest}" if _is_close(one.costed_error) else f"step times: {rest}"
        said += f" What {_named(one)} lacks is {lack}."
    return said


def _kinds(machine: MachineFit) -> str:
    """Say which kind of profile predicts cells left out better, and where a smooth law misses them."""
    choice, ratios = machine.choice, machine.roofline_ratios
    many = [ratio for positions, ratio in ratios.items() if positions > 1]
    against = "" if choice.table_error is None else f", a `table` of the others {choice.table_error:.1%}"
    said = f"""Over cells left out, a fit of `roofline` is off by {choice.error:.1%} on average{against}:
    `{machine.profile.kind}` is used. The `roofline` gives {min(many):.2f} to {max(many):.2f} times the
    measured time at 2 positions and more (medians), and {ratios[1]:.2f} times at one."""
    if _is_close(ratios[1] - 1.0):
        return said
    return f"""{said} The term it lacks is the library's change from matrix-vector kernels at one position to
    matrix-matrix kernels at two, which no smooth law follows."""


def _filled(text: str) -> str:
    return fill(" ".join(text.split()), 110, break_on_hyphens=False)


def _named(one: Comparison) -> str:
    return f"{_TITLES[one.draft].lower()}, K = {one.num_speculative_tokens}"


def draw(comparisons: Sequence[Comparison], draft: str, axes: Axes) -> Axes:
    """Draw measured and simulated speed-ups of one draft by number of speculative tokens."""
    chosen = [one for one in comparisons if one.draft == draft]
    counts = [one.num_speculative_tokens for one in chosen]
    low, high = zip(*(one.interval for one in chosen), strict=True)
    axes.axhline(1.0, color="0.7", linewidth=0.8)
    axes.vlines(counts, low, high, color=_COLORS["measured"])
    axes.plot(
        counts,
        [one.measured_speedup for one in chosen],
        color=_COLORS["measured"],
        marker="o",
        linestyle="none",
        label="measured, 95 % over prompts",
    )
    simulated = [one.simulated_speedup for one in chosen]
    axes.plot(counts, simulated, color=_COLORS["simulated"], label="simulated")
    costed = [one.costed_speedup for one in chosen]
    axes.plot(
        counts, costed, color=_COLORS["simulated"], linestyle=":", marker="x", label="same rounds, costed"
    )
    axes.set_title(_TITLES[draft])
    axes.set_xlabel("speculative tokens K")
    axes.set_ylim(bottom=0.0)
    return axes


def _save_figure(comparisons: Sequence[Comparison], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    panels = figure.subplots(1, len(_TITLES), sharey=True)
    for draft, axes in zip(_TITLES, panels, strict=True):
        draw(comparisons, draft, axes)
    panels[0].set_ylabel("speed-up of decoding")
    panels[0].legend(fontsize="small")
    figure.savefig(path)


if __name__ == "__main__":
    sys.exit(main())
