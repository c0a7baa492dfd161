"""A step captured once as a CUDA graph and replayed: kernels without the host's launches between them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from specsim.errors import ConfigError

_NUM_WARMUPS = 3


class GraphedStep:
    """A step on fixed tensors as one CUDA graph.

    Parameters
    ----------
    step
        The step; it may not wait for the device, and its tensors must stay where they are.
    undo
        Brings back the state that the step changed; called after each step while warming up, and not
        after the capture, which records kernels and runs none.

    Raises
    ------
    ConfigError
        Where the step cannot be captured.
    """

    def __init__(self, step: Callable[[], torch.Tensor], undo: Callable[[], None]) -> None:
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_NUM_WARMUPS):
                    step()
                    undo()
            torch.cuda.current_stream().wait_stream(side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._output = step()
        except (RuntimeError, AssertionError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ConfigError(
                f"the step cannot be captured as a CUDA graph ({reason}); use --no-graphs"
            ) from None

    def __call__(self) -> torch.Tensor:
        """Replay the graph, and return its output, which the next replay overwrites."""
        self._graph.replay()
        return self._output
