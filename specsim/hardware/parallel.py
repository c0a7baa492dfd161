"""Communication of one model spread over several devices.

Tensor parallelism sums the output of attention and of the feed-forward block over the n devices: two
all-reduces a layer, each α + 2(n−1)/n·bytes/B with a fixed latency α and a bus bandwidth B (ring
all-reduce, Patarasuk & Yuan 2009). Expert parallelism keeps the first and replaces the second by two
all-to-alls, which send each position to its experts and back, α + (n−1)/n·bytes/n/B each.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from specsim.arrays import Floats
from specsim.config.base import Spec
from specsim.errors import ConfigError
from specsim.hardware.model import ModelSpec
from specsim.units import BytesPerSecond, Seconds


class AllReduce(Spec):
    """Measured all-reduce among a number of devices."""

    num_devices: int = Field(ge=2)
    """Devices that take part."""
    latency_s: Seconds = Field(ge=0)
    """α: time of an empty all-reduce, launched from a captured graph, s."""
    bus_bandwidth_bytes_per_s: BytesPerSecond = Field(gt=0)
    """B of the formula above, bytes/s."""


class Links(Spec):
    """Links between the devices of one machine."""

    intra_node_bandwidth_bytes_per_s: BytesPerSecond | None = Field(default=None, gt=0)
    """Bandwidth of one device to the others, one direction, bytes/s."""
    allreduce_latency_s: Seconds | None = Field(default=None, ge=0)
    """Latency of an all-reduce among any number of devices, s; ``allreduce`` takes precedence."""
    eager_allreduce_latency_s: Seconds | None = Field(default=None, ge=0)
    """Latency of an all-reduce that is launched from the host, not from a captured graph, s."""
    allreduce: tuple[AllReduce, ...] = ()
    """Measured all-reduces by number of devices."""

    @model_validator(mode="after")
    def _check_distinct(self) -> Self:
        sizes = [one.num_devices for one in self.allreduce]
        if len(set(sizes)) != len(sizes):
            raise ConfigError(f"allreduce: a number of devices is given twice: {sizes}")
        return self

    def allreduce_of(self, num_devices: int, *, is_eager: bool, device: str) -> AllReduce:
        """Return the law of an all-reduce among a number of devices.

        Raises
        ------
        ConfigError
            Where the profile states none for this number of devices.
        """
        found = next((one for one in self.allreduce if one.num_devices == num_devices), None)
        latency_s, bandwidth = self.allreduce_latency_s, self.intra_node_bandwidth_bytes_per_s
        if found is None and not self.allreduce and latency_s is not None and bandwidth is not None:
            found = AllReduce(
                num_devices=num_devices, latency_s=latency_s, bus_bandwidth_bytes_per_s=bandwidth
            )
        if found is None:
            known = ", ".join(str(one.num_devices) for one in self.allreduce) or "none"
            raise ConfigError(
                f"profile '{device}' has no all-reduce among {num_devices} devices (links.allreduce: {known})"
            )
        if not is_eager:
            return found
        if self.eager_allreduce_latency_s is None:
            raise ConfigError(
                f"profile '{device}' has no links.eager_allreduce_latency_s; needed for eager launch"
            )
        return found.model_copy(update={"latency_s": self.eager_allreduce_latency_s})


def allreduce_time(law: AllReduce, message_bytes: Floats) -> Floats:
    """Time of one all-reduce of a message of some size on each device, s.

    Examples
    --------
    >>> import numpy as np
    >>> law = AllReduce(num_devices=4, latency_s=4.9e-6, bus_bandwidth_bytes_per_s=302e9)
    >>> round(float(allreduce_time(law, np.array(8192.0 * 2))) * 1e6, 2)
    4.98
    """
    share = 2.0 * (law.num_devices - 1) / law.num_devices
    return law.latency_s + share / law.bus_bandwidth_bytes_per_s * message_bytes


def all_to_all_time(law: AllReduce, message_bytes: Floats) -> Floats:
    """Time of one all-to-all of a message that is spread evenly over the devices, s.

    ``message_bytes`` is the message of all devices together; each holds 1/n and keeps 1/n of that.
    """
    share = (law.num_devices - 1) / law.num_devices**2
    return law.latency_s + share / law.bus_bandwidth_bytes_per_s * message_bytes


def num_cache_shards(model: ModelSpec, num_devices: int) -> int:
    """Return into how many parts the KV cache is split; each is held by num_devices / parts devices.

    Key and value heads are split, none below one; a latent cache (multi-head latent attention) has no
    heads to split and is held whole by each device.
    """
    if model.architecture.attention == "latent":
        return 1
    return min(num_devices, model.key_value_heads)
