"""The requests of a run as arrays, and the part of a scenario that describes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from specsim.arrays import Floats, Ints
from specsim.config.base import Spec, refuse
from specsim.streams import Purpose, RandomStreams
from specsim.workload.arrivals import arrival_times
from specsim.workload.lengths import LengthLaw, draw_lengths

MAX_TOKENS = 10**8
"""Longest mean prompt or output, tokens: contexts of a whole batch then still multiply within 64 bits."""
MAX_PROMPTS = 10**7
"""Most requests in a run, or users of a closed loop."""
_Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
_Spread = Annotated[float, Field(ge=0, le=MAX_TOKENS)]


class LengthsSpec(Spec):
    """Lengths of prompts and outputs; the standard deviation is 0 unless given."""

    prompt_tokens: _Tokens | None = None
    """Mean prompt length, tokens; a recorded trace's own prompt lengths where absent."""
    prompt_tokens_stdev: _Spread = 0.0
    """Standard deviation of the prompt length, tokens."""
    prompt_tokens_min: _Tokens = 1
    """Shortest prompt, tokens."""
    prompt_tokens_max: _Tokens | None = None
    """Longest prompt, tokens; mean + 4 standard deviations where absent."""
    output_tokens: _Tokens | None = None
    """Mean output length, tokens; caps a recorded path, never extends it."""
    output_tokens_stdev: _Spread = 0.0
    """Standard deviation of the output length, tokens."""
    output_tokens_min: _Tokens = 1
    """Shortest output, tokens."""
    output_tokens_max: _Tokens | None = None
    """Longest output, tokens; mean + 4 standard deviations where absent."""

    @model_validator(mode="after")
    def _bounds_hold_the_mean(self) -> Self:
        laws = (("prompt_tokens", self.prompt_law()), ("output_tokens", self.output_law()))
        refuse(
            [
                (name, f"{law.mean} is outside [{name}_min, {name}_max] = [{law.minimum}, {law.maximum}]")
                for name, law in laws
                if law and not law.minimum <= law.mean <= law.maximum
            ]
        )
        return self

    def prompt_law(self) -> LengthLaw | None:
        """Law of the prompt length, or None where the distributions bring their own prompts."""
        return _law(
            self.prompt_tokens, self.prompt_tokens_stdev, self.prompt_tokens_min, self.prompt_tokens_max
        )

    def output_law(self) -> LengthLaw | None:
        """Law of the output length, or None where the distributions bring their own endings."""
        return _law(
            self.output_tokens, self.output_tokens_stdev, self.output_tokens_min, self.output_tokens_max
        )


class RequestClassSpec(LengthsSpec):
    """One class of a mixture of requests; the scenario adds where its distributions come from."""

    name: str = Field(min_length=1)
    """Name of the class, such as ``code``."""
    share: float = Field(gt=0, le=1)
    """Fraction of the requests; the shares of all classes sum to 1."""


def _word_of_infinity(given: object) -> object:
    """Return infinity as the word that stands for it in a file, anything else as it is."""
    return "inf" if isinstance(given, float) and given == math.inf else given


_Rate = Annotated[
    Annotated[float, Field(ge=1e-9, le=1e9)] | Literal["inf"], BeforeValidator(_word_of_infinity)
]


class ArrivalSpec(Spec):
    """How many requests there are and when they arrive."""

    num_prompts: int = Field(default=64, ge=1, le=MAX_PROMPTS)
    """Requests in the run."""
    max_concurrency: int | None = Field(default=None, ge=1, le=MAX_PROMPTS)
    """Closed loop: so many users, each sending its next request when the last one is answered."""
    request_rate: _Rate | None = None
    """Open loop: requests per second, whatever the answers take; ``inf``: all at once."""
    burstiness: float = Field(default=1.0, ge=1e-3, le=1e6)
    """Open loop: shape of the gamma distributed gaps; 1 is a Poisson stream, smaller is burstier."""

    @model_validator(mode="after")
    def _one_kind_of_load(self) -> Self:
        if self.max_concurrency is None and self.request_rate is None:
            raise ValueError("give max_concurrency (closed loop) or request_rate (open loop, 1/s)")
        if self.max_concurrency is not None and self.request_rate is not None:
            raise ValueError("max_concurrency and request_rate exclude each other")
        return self


@dataclass(slots=True)
class Requests:
    """All requests of a run, arrays [num_requests] in order of arrival."""

    request_class: Ints
    """Number of the class of each request."""
    index_in_class: Ints
    """Running number within its class."""
    num_prompt_tokens: Ints
    """Prompt lengths; 0 where the distributions bring their own."""
    num_output_tokens: Ints
    """Cap on the output; 0 where the distributions bring their own endings."""
    arrival_s: Floats | None
    """Arrival times in seconds; None in a closed loop."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return int(self.request_class.size)


def build_requests(
    streams: RandomStreams,
    *,
    arrivals: ArrivalSpec,
    classes: tuple[LengthsSpec, ...],
    shares: tuple[float, ...],
) -> Requests:
    """Return the requests of a run: class, lengths and arrival of each.

    Classes are dealt out in proportion, the class furthest behind its share first, so that any stretch
    of requests holds them in proportion and a comparison is not blurred by the draw.
    """
    num_requests = arrivals.num_prompts
    request_class, index_in_class = _deal(num_requests, shares)
    prompt_uniforms = streams.generator(Purpose.PROMPT_LENGTH).random(num_requests)
    output_uniforms = streams.generator(Purpose.OUTPUT_LENGTH).random(num_requests)
    prompts = np.zeros(num_requests, dtype=np.int64)
    outputs = np.zeros(num_requests, dtype=np.int64)
    for number, lengths in enumerate(classes):
        rows = request_class == number
        if (law := lengths.prompt_law()) is not None:
            prompts[rows] = draw_lengths(law, prompt_uniforms[rows])
        if (law := lengths.output_law()) is not None:
            outputs[rows] = draw_lengths(law, output_uniforms[rows])
    arrival_s = None
    if arrivals.request_rate == "inf":
        arrival_s = np.zeros(num_requests)
    elif arrivals.request_rate is not None:
        arrival_s = arrival_times(
            streams.generator(Purpose.ARRIVAL),
            num_requests=num_requests,
            rate_per_s=arrivals.request_rate,
            burstiness=arrivals.burstiness,
        )
    return Requests(request_class, index_in_class, prompts, outputs, arrival_s)


def _deal(num_requests: int, shares: tuple[float, ...]) -> tuple[Ints, Ints]:
    request_class = np.zeros(num_requests, dtype=np.int64)
    index_in_class = np.arange(num_requests, dtype=np.int64)
    if len(shares) == 1:
        return request_class, index_in_class
    dealt = [0] * len(shares)
    for request in range(num_requests):
        behind = [share * (request + 1) - count for share, count in zip(shares, dealt, strict=True)]
        number = max(range(len(shares)), key=behind.__getitem__)
        request_class[request], index_in_class[request] = number, dealt[number]
        dealt[number] += 1
    return request_class, index_in_class


def _law(mean: int | None, stdev: float, minimum: int, maximum: int | None) -> LengthLaw | None:
    if mean is None:
        return None
    return LengthLaw(mean, stdev, minimum, maximum if maximum is not None else mean + round(4 * stdev))
