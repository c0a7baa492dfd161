"""``specsim record``: language models in, a trace of real token distributions out."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specsim.cli.language_models import Device, Dtype, refuse_missing_libraries

if TYPE_CHECKING:
    from specsim.recording import RecordingSettings
    from specsim.speculation.trace import DraftSampleMethod

_LIBRARIES = ("torch", "transformers", "safetensors", "gguf", "accelerate")


class SampleMethod(StrEnum):
    """How a model drafts."""

    greedy = "greedy"
    probabilistic = "probabilistic"


def record(
    target: Annotated[Path, typer.Argument(help="Target: a Hugging Face directory or a .gguf file.")],
    output: Annotated[
        str,
        typer.Option("-o", "--output", help="Trace to write; with several drafts it holds {draft}."),
    ],
    draft: Annotated[
        list[str] | None,
        typer.Option(
            help="lookup, exit:LAYERS, module:PACKAGE:FUNCTION (called with the target's network, gives a"
            " module), a trained head, or a model that shares the tokenizer; may be repeated."
        ),
    ] = None,
    is_ngram: Annotated[
        bool,
        typer.Option("--ngram", help="TARGET is text, a file or folder: count its n-grams, without models."),
    ] = False,
    ngram_order: Annotated[int, typer.Option(help="With --ngram: longest n-grams, words.")] = 4,
    ngram_vocabulary: Annotated[int, typer.Option(help="With --ngram: most words.")] = 2000,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            help="Prompt set: a shipped name or a YAML file; may be repeated. All shipped ones if absent."
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Temperature of target and draft; 0 is greedy.")] = 1.0,
    draft_temperature: Annotated[
        float | None, typer.Option(help="Temperature of the draft, if another.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Tokens that the target keeps.")] = None,
    top_p: Annotated[float, typer.Option(help="Mass that the target keeps.")] = 1.0,
    draft_sample_method: Annotated[
        SampleMethod, typer.Option(help="How a model drafts.")
    ] = SampleMethod.probabilistic,
    prompt_lookup_max: Annotated[int, typer.Option(help="Longest n-gram of the lookup.")] = 3,
    prompt_lookup_min: Annotated[int, typer.Option(help="Shortest n-gram of the lookup.")] = 1,
    num_speculative_tokens: Annotated[
        int, typer.Option(help="Most tokens that a lookup or a trained head drafts.")
    ] = 8,
    union: Annotated[
        int, typer.Option(min=0, help="Keep both models at the union of so many most probable tokens.")
    ] = 0,
    tails: Annotated[
        int, typer.Option(min=0, help="Tokens to go on drafting after a rejection, at every position.")
    ] = 0,
    first: Annotated[int | None, typer.Option(min=1, help="Record so many prompts of each set only.")] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a continuation.")] = 160,
    batch_size: Annotated[int, typer.Option(help="Prompts sampled together.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    device: Annotated[Device, typer.Option(help="Where the models run.")] = Device.auto,
    dtype: Annotated[Dtype, typer.Option(help="Precision of the arithmetic.")] = Dtype.float32,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the arithmetic.")] = None,
) -> None:
    """Record what a target says to prompts, and what drafts would have said, as traces to simulate with.

    A recording that was killed goes on where it stopped: finished batches are kept beside the output
    until all are there.
    """
    from specsim.errors import ConfigError

    if is_ngram:
        _check_output(output, num_drafts=1)
        _record_ngrams(target, Path(output), order=ngram_order, most_words=ngram_vocabulary)
        return
    if not draft:
        raise ConfigError("--draft: missing; lookup, exit:LAYERS or a model (or --ngram for text)")
    refuse_missing_libraries(_LIBRARIES, purpose="recording")
    _check_output(output, num_drafts=len(draft))
    # The slow imports come only now, when they are known to be there.
    from specsim.recording import PromptLookup, load_language_model, load_prompt_set
    from specsim.recording import record as record_traces
    from specsim.recording.extras import Extras
    from specsim.recording.named_drafts import named_draft
    from specsim.recording.prompt_sets import shipped_prompt_sets
    from specsim.recording.step_bench import use_threads
    from specsim.recording.warp import Warp

    settings = _settings(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        max_tokens=max_tokens,
        batch_size=batch_size,
        seed=seed,
    )
    prompt_sets = [load_prompt_set(name) for name in prompts or shipped_prompt_sets()]
    prompt_sets = [part.model_copy(update={"prompts": part.prompts[:first]}) for part in prompt_sets]
    lookup = PromptLookup(prompt_lookup_max, prompt_lookup_min, num_speculative_tokens)
    if threads is not None:
        use_threads(threads, device.value)
    model = load_language_model(target, device=device.value, dtype=dtype.value)
    warp = Warp(temperature if draft_temperature is None else draft_temperature)
    method: DraftSampleMethod = draft_sample_method.value
    extras = Extras(union, tails, seed)
    drafts = [named_draft(word, model, warp, method=method, lookup=lookup, extras=extras) for word in draft]
    total = max_tokens * sum(len(prompt_set.prompts) for prompt_set in prompt_sets)
    parts = Path(f"{output}.parts")
    with _progress(total) as on_tokens:
        traces = record_traces(model, drafts, prompt_sets, settings, parts=parts, on_tokens=on_tokens)
    for one, trace in zip(drafts, traces, strict=True):
        path = Path(output.replace("{draft}", one.slug))
        trace.save(path)
        typer.echo(f"{path}: {trace.num_prompts} prompts, {trace.num_tokens} tokens, {trace.header.draft}")
    shutil.rmtree(parts)


def _record_ngrams(text: Path, output: Path, *, order: int, most_words: int) -> None:
    """Write the counts of a text, for ``distributions: {kind: ngram}``."""
    from specsim.speculation.ngram import counts_of_files, save_counts

    counts, vocabulary = counts_of_files([text], order=order, most_words=most_words)
    save_counts(counts, output, vocabulary=vocabulary.words, source=text.name)
    kinds = ", ".join(str(len(grams)) for grams in counts.grams)
    typer.echo(f"{output}: {counts.vocabulary_size} words, {kinds} n-grams of order 1 to {order}")


def _check_output(output: str, *, num_drafts: int) -> None:
    """Refuse a place that could not be written, before hours of recording."""
    from specsim.errors import ConfigError

    if num_drafts > 1 and "{draft}" not in output:
        raise ConfigError(f"--output '{output}': {num_drafts} drafts need {{draft}} in the name")
    folder = Path(output).parent
    if not folder.is_dir():
        raise ConfigError(f"--output '{output}': no such folder: {folder}")


def _settings(**flags: float | None) -> RecordingSettings:
    from specsim.config import parse, validate
    from specsim.recording import RecordingSettings

    return validate(RecordingSettings, parse(json.dumps(flags), file="command line"))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Tokens done, on stderr, where somebody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from specsim.cli.progress import ProgressLine

    line = ProgressLine("tokens at most")
    done = 0

    def advance(num_tokens: int) -> None:
        nonlocal done
        done += num_tokens
        line.update(done, total)

    try:
        yield advance
    finally:
        line.close()
