"""Timed passes of a network: any number of positions and sequences over any cached context.

A step is what decoding does: one pass over new tokens, the law of the next token at each position, a token
drawn from it, and the tokens on the host. CUDA events time it on a GPU, CPU time of the one thread on a CPU.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from specsim.config import names
from specsim.errors import CapacityError, ConfigError, DomainError
from specsim.hardware import ModelSpec, load_model
from specsim.hardware.formats import BYTES_PER_VALUE
from specsim.recording.cached import CachedNetwork
from specsim.recording.graphed import GraphedStep
from specsim.recording.models import Device, Dtype, load_language_model
from specsim.recording.step_time import StepTime
from specsim.recording.warp import Warp, sample
from specsim.units import format_bytes

_CHUNK_TOKENS = 512
_MAX_CACHED_TOKENS = 1 << 17
_MS_PER_S = 1e3


class NetworkBench:
    """A network whose steps are timed.

    Parameters
    ----------
    network
        A causal language model in evaluation mode.
    spec
        Its shape.
    dtype
        Format of its weights.
    warp
        The law of tokens that a step computes and samples from.
    uses_graphs
        Capture each cell's step as a CUDA graph once, and replay it; needs a GPU.
    """

    def __init__(
        self,
        network: nn.Module,
        spec: ModelSpec,
        *,
        dtype: Dtype,
        warp: Warp | None = None,
        uses_graphs: bool = False,
    ) -> None:
        self.network = network
        self.spec = spec
        self.dtype = dtype
        self.model = spec.name if spec.name in names("models") else model_text(spec)
        self._warp = warp or Warp(1.0)
        self._device = next(network.parameters()).device
        is_gpu = self._device.type == "cuda"
        self.gpu = torch.cuda.get_device_name(self._device) if is_gpu else None
        self._tokens = torch.Generator().manual_seed(0)
        self._filled: dict[tuple[int, int], CachedNetwork] = {}
        self._cached = CachedNetwork(network)
        self._ids = torch.empty(0)
        self._is_prefill = False
        self._uses_graphs = uses_graphs
        self._replay: GraphedStep | None = None

    @torch.inference_mode()
    def prepare(self, phase: str, num_positions: int, num_sequences: int, context_tokens: int) -> None:
        """Bring the cache to a context of random tokens and draw the tokens of the step, unmeasured.

        Raises
        ------
        DomainError
            Where positions cannot be spread evenly over the sequences.
        ConfigError
            Where the step cannot be captured as a CUDA graph.
        """
        if num_positions % num_sequences:
            raise DomainError(f"{num_positions} positions cannot be spread over {num_sequences} sequences")
        each = num_positions // num_sequences
        self._is_prefill = phase == "prefill"
        self._ids = self._random_ids(num_sequences, each)
        self._replay = None
        if not self._uses_graphs:
            self._cached = self._with_context(num_sequences, context_tokens)
            return
        self._cached = CachedNetwork(self.network, max_tokens=context_tokens + each)
        self._read(self._cached, num_sequences, context_tokens)
        self._replay = GraphedStep(self._tokens_of_step, lambda: self._cached.take_back(each))
        # The capture counted tokens on the host, but ran nothing on the device.
        self._cached.num_tokens -= each

    @torch.inference_mode()
    def step(self) -> StepTime:
        """Run and time one step; the cache is as before."""
        is_gpu = self._device.type == "cuda"
        if is_gpu:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            begin.record()
        wall_s, host_s, thread_s = time.perf_counter(), time.process_time(), time.thread_time()
        self._run()
        if is_gpu:
            end.record()
            torch.cuda.synchronize()
        thread_s, host_s = time.thread_time() - thread_s, time.process_time() - host_s
        wall_s = time.perf_counter() - wall_s
        self._cached.take_back(self._ids.shape[1])
        if is_gpu:
            return StepTime(begin.elapsed_time(end) / _MS_PER_S, wall_s, host_s)
        return StepTime(thread_s if torch.get_num_threads() == 1 else None, wall_s, host_s)

    def _run(self) -> list[int]:
        if self._replay is None:
            tokens = self._tokens_of_step()
        else:
            tokens = self._replay()
            self._cached.num_tokens += self._ids.shape[1]
        found: list[int] = tokens.tolist()
        return found

    def _tokens_of_step(self) -> torch.Tensor:
        logits = self._cached.logits(self._ids, last_only=self._is_prefill)
        law = self._warp(logits).flatten(0, 1)
        luck = torch.full((law.shape[0],), 0.5, dtype=torch.float64, device=self._device)
        return sample(law, luck)

    def _with_context(self, num_sequences: int, context_tokens: int) -> CachedNetwork:
        """Cache of as many sequences and tokens, kept for the next visit where memory allows."""
        key = (num_sequences, context_tokens)
        if key not in self._filled:
            held = sum(sequences * tokens for sequences, tokens in self._filled)
            if held + num_sequences * context_tokens > _MAX_CACHED_TOKENS:
                self._filled.clear()
            cached = CachedNetwork(self.network)
            self._read(cached, 1, context_tokens)
            cached.repeat(num_sequences)
            self._filled[key] = cached
        return self._filled[key]

    def _read(self, cached: CachedNetwork, num_sequences: int, num_tokens: int) -> None:
        """Let a cache read random tokens."""
        for start in range(0, num_tokens, _CHUNK_TOKENS):
            ids = self._random_ids(num_sequences, min(_CHUNK_TOKENS, num_tokens - start))
            cached.logits(ids, last_only=True)

    def _random_ids(self, num_sequences: int, num_tokens: int) -> torch.Tensor:
        shape = (num_sequences, num_tokens)
        return torch.randint(self.spec.vocab_size, shape, generator=self._tokens).to(self._device)


def model_text(spec: ModelSpec) -> str:
    """Return a model's shape as one line of JSON, for the ``model`` column of a trace."""
    fields = spec.model_dump(mode="json", exclude_defaults=True, exclude={"recorded", "source"})
    return json.dumps(fields, sort_keys=True)


def load_bench(
    model: str, *, device: Device = "auto", dtype: Dtype = "bfloat16", uses_graphs: bool = False
) -> NetworkBench:
    """Load a network to be timed.

    Parameters
    ----------
    model
        A Hugging Face directory or a ``.gguf`` file: its weights. A preset or the path of a
        ``config.json``: random weights of that shape.
    device
        ``auto`` takes CUDA where there is one.
    dtype
        Format of the weights.
    uses_graphs
        Replay CUDA graphs; needs a GPU.

    Raises
    ------
    ConfigError
        Where there is no such model, or transformers has no network for it.
    CapacityError
        Where random weights exceed the device's memory.
    """
    path = Path(model)
    if path.suffix == ".gguf" or (path.is_dir() and any(path.glob("*.safetensors"))):
        loaded = load_language_model(path, device=device, dtype=dtype)
        shape = {**loaded.network.config.get_text_config().to_dict(), "name": loaded.name}
        spec = ModelSpec.model_validate(shape)
        return NetworkBench(loaded.network, spec, dtype=dtype, uses_graphs=uses_graphs)
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device 'cuda' was asked for, but torch finds none")
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    spec = load_model(model)
    if spec.name == "unnamed":
        spec = spec.model_copy(update={"name": path.parent.name or "unnamed"})
    network = _random_network(spec, chosen, dtype)
    return NetworkBench(network, spec, dtype=dtype, uses_graphs=uses_graphs)


def _random_network(spec: ModelSpec, device: str, dtype: Dtype) -> nn.Module:
    _check_memory(spec, device, dtype)
    fields = spec.model_dump(exclude_none=True, exclude={"name", "source", "recorded", "model_type"})
    known = AutoConfig.for_model(spec.model_type)
    config = AutoConfig.for_model(
        spec.model_type, **{key: value for key, value in fields.items() if hasattr(known, key)}
    )
    torch.manual_seed(0)
    try:
        with torch.device(device), contextlib.redirect_stderr(io.StringIO()):
            network = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    except (ValueError, KeyError) as error:
        raise ConfigError(f"'{spec.name}': {str(error).splitlines()[0]}") from None
    network.eval()
    return network


def _check_memory(spec: ModelSpec, device: str, dtype: Dtype) -> None:
    """Refuse weights beyond the memory there is, for which the system would end the process unheard."""
    if device == "cuda":
        _, memory_bytes = torch.cuda.mem_get_info()
    else:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    weight_bytes = spec.params_total * BYTES_PER_VALUE[dtype]
    if weight_bytes > memory_bytes:
        needed, held = format_bytes(weight_bytes), format_bytes(memory_bytes)
        message = (
            f"'{spec.name}': {needed} weights in {dtype} exceed the {held} memory of the {device} device"
        )
        raise CapacityError(message, lacking_bytes=weight_bytes - memory_bytes)


def use_threads(threads: int, device: Device) -> Device:
    """Set the threads of the arithmetic, and return the device that will compute: ``cpu`` or ``cuda``.

    Raises
    ------
    ConfigError
        Where CUDA was asked for and there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device 'cuda' was asked for, but torch finds none")
    torch.set_num_threads(threads)
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
