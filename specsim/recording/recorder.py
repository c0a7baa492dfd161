"""Recording: sample continuations from a target, score drafts along them, and make a trace a draft.

Recording goes batch by batch. Each finished batch is a small trace in a folder of parts, so that a
recording that was killed goes on where it stopped and ends with the same bytes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from pydantic import Field

from specsim import __version__
from specsim.config.base import Spec
from specsim.errors import ConfigError, DomainError
from specsim.recording.drafts import RecordedDraft
from specsim.recording.generate import Continuation, generate
from specsim.recording.models import LanguageModel
from specsim.recording.prompt_sets import Prompt, PromptSet, describe_sources, encode_prompts
from specsim.recording.warp import Warp
from specsim.speculation.trace import Trace, TraceHeader
from specsim.speculation.trace_prompts import concatenate, select_prompts
from specsim.streams import Purpose, RandomStreams


class RecordingSettings(Spec):
    """How continuations are sampled."""

    temperature: float = Field(ge=0)
    """Temperature of the target; 0 is greedy."""
    top_k: int | None = Field(default=None, gt=0)
    """Tokens that the target keeps; None keeps all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Mass that the target keeps."""
    max_tokens: int = Field(default=160, gt=0)
    """Most tokens a continuation; one that is cut there is censored."""
    batch_size: int = Field(default=16, gt=0)
    """Prompts sampled together; p of all their positions is held in memory."""
    seed: int = Field(default=0, ge=0)
    """Seed of the sampling."""

    @property
    def warp(self) -> Warp:
        """The law of the target's tokens."""
        return Warp(self.temperature, self.top_k, self.top_p)


def record(
    target: LanguageModel,
    drafts: Sequence[RecordedDraft],
    prompt_sets: Sequence[PromptSet],
    settings: RecordingSettings,
    *,
    parts: Path | None = None,
    on_tokens: Callable[[int], None] = lambda _: None,
) -> list[Trace]:
    """Record all drafts along the same continuations of the target.

    The uniforms of a prompt are keyed by its text, so that every draft, and every recording with the same
    seed, sees it with the same luck.

    Parameters
    ----------
    target
        The model that speaks.
    drafts
        What is scored along its continuations, D of them.
    prompt_sets
        The prompts, in the order of the trace.
    settings
        How the target is sampled.
    parts
        Folder in which finished batches are kept; those there already are not recorded again.
    on_tokens
        Told how many tokens each step sampled.

    Returns
    -------
    list of Trace
        One for each draft, [D].

    Raises
    ------
    DomainError
        A prompt that does not fit the target's context.
    ConfigError
        No draft or no prompt, or parts of another recording.
    """
    if not drafts:
        raise ConfigError("nothing to record: name at least one draft")
    prompts = encode_prompts(prompt_sets, target)
    _check_lengths(target, prompts, settings.max_tokens)
    sources = describe_sources(prompt_sets)
    headers = [_header(target, draft, settings, sources) for draft in drafts]
    # Prompts of like length share a batch, which keeps the padding small.
    order = sorted(range(len(prompts)), key=lambda number: (len(prompts[number].tokens), number))
    batches = [order[i : i + settings.batch_size] for i in range(0, len(order), settings.batch_size)]
    recorded: list[list[Trace]] = []
    for number, batch in enumerate(batches):
        files = [] if parts is None else [parts / f"{number:04d}-{draft.slug}.npz" for draft in drafts]
        traces = _read_parts(files, headers)
        if traces is None:
            chosen = [prompts[row] for row in batch]
            continuations = _sample(target, chosen, settings, on_tokens)
            traces = [
                _trace(header, draft, chosen, continuations)
                for header, draft in zip(headers, drafts, strict=True)
            ]
            for trace, file in zip(traces, files, strict=False):
                file.parent.mkdir(parents=True, exist_ok=True)
                trace.save(file)
        else:
            on_tokens(traces[0].num_tokens)
        recorded.append(traces)
    place = np.argsort(np.asarray(order)).tolist()
    return [select_prompts(concatenate(pieces), place) for pieces in zip(*recorded, strict=True)]


def _sample(
    target: LanguageModel,
    prompts: Sequence[Prompt],
    settings: RecordingSettings,
    on_tokens: Callable[[int], None],
) -> list[Continuation]:
    streams = RandomStreams(settings.seed)
    uniforms = np.stack(
        [
            streams.generator(Purpose.NEXT_TOKEN, prompt.luck_key).random(settings.max_tokens)
            for prompt in prompts
        ]
    )
    tokens = [prompt.tokens for prompt in prompts]
    return generate(target, tokens, uniforms, warp=settings.warp, on_tokens=on_tokens)


def _trace(
    header: TraceHeader,
    draft: RecordedDraft,
    prompts: Sequence[Prompt],
    continuations: Sequence[Continuation],
) -> Trace:
    columns = [draft.columns(continuation) for continuation in continuations]
    trace = Trace(
        header=header,
        offsets=np.cumsum([0, *(len(item.token) for item in continuations)]),
        num_prompt_tokens=np.array([len(prompt.tokens) for prompt in prompts], dtype=np.int32),
        domain=np.array([prompt.domain for prompt in prompts]),
        language=np.array([prompt.language for prompt in prompts]),
        ended_by=np.array([item.ended_by for item in continuations]),
        token=np.concatenate([item.token for item in continuations]).astype(np.int32),
        p_token=np.concatenate([_p_of_tokens(item) for item in continuations]),
    )
    for name in columns[0]:
        setattr(trace, name, np.concatenate([column[name] for column in columns]))
    return trace


def _p_of_tokens(continuation: Continuation) -> np.typing.NDArray[np.float32]:
    token = torch.from_numpy(continuation.token)[:, None]
    return continuation.probabilities.gather(1, token)[:, 0].numpy().astype(np.float32)


def _header(
    target: LanguageModel, draft: RecordedDraft, settings: RecordingSettings, sources: str
) -> TraceHeader:
    hashes = {"target": target.sha256, "draft": draft.sha256}
    return TraceHeader(
        target=target.name,
        draft=draft.name,
        tokenizer=target.name,
        vocabulary_size=target.vocabulary_size,
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        draft_temperature=draft.temperature,
        draft_sample_method=draft.draft_sample_method,
        prompts=f"{sources}; at most {settings.max_tokens} tokens each, batches of {settings.batch_size}",
        seed=settings.seed,
        created_by=f"specsim {__version__}",
        versions={"python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "torch", "transformers")},
        sha256={role: digest for role, digest in hashes.items() if digest is not None},
    )


def _check_lengths(target: LanguageModel, prompts: Sequence[Prompt], max_tokens: int) -> None:
    if not prompts:
        raise ConfigError("nothing to record: name at least one prompt set")
    longest = max(len(prompt.tokens) for prompt in prompts)
    if target.max_tokens is not None and longest + max_tokens > target.max_tokens:
        raise DomainError(
            f"a prompt of {longest} tokens and {max_tokens} more: '{target.name}' takes {target.max_tokens}"
        )


def _read_parts(files: Sequence[Path], headers: Sequence[TraceHeader]) -> list[Trace] | None:
    """Finished traces of a batch, or None where it is still to be recorded."""
    if not files or not all(file.is_file() for file in files):
        return None
    traces = [Trace.load(file) for file in files]
    for trace, header, file in zip(traces, headers, files, strict=True):
        if trace.header != header:
            raise ConfigError(f"{file}: part of another recording; remove {file.parent} to start again")
    return traces
