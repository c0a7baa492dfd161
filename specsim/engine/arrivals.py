"""The queue of requests that wait to be served: a closed loop of users, or an open stream."""

from __future__ import annotations

from specsim.arrays import Ints


class ArrivalQueue:
    """Requests in order of arrival; in a closed loop an answer makes the next one arrive.

    Parameters
    ----------
    num_requests
        Requests in all.
    arrival_ps
        Arrival times of an open stream, [num_requests]; None for a closed loop.
    max_concurrency
        Users of a closed loop, who all send their first request at time 0.
    """

    def __init__(self, num_requests: int, *, arrival_ps: Ints | None, max_concurrency: int) -> None:
        self._num_requests = num_requests
        self._is_closed = arrival_ps is None
        self.arrival_ps: list[int] = (
            [0] * min(max_concurrency, num_requests) if arrival_ps is None else arrival_ps.tolist()
        )
        self._next = 0

    def next_arrival_ps(self) -> int | None:
        """Arrival time of the first request that is not admitted yet; None if none is to come."""
        return self.arrival_ps[self._next] if self._next < len(self.arrival_ps) else None

    def admit(self, now_ps: int, *, room: int) -> list[int]:
        """Take up to ``room`` requests that have arrived by now, in order."""
        first = self._next
        while (
            self._next - first < room
            and self._next < len(self.arrival_ps)
            and self.arrival_ps[self._next] <= now_ps
        ):
            self._next += 1
        return list(range(first, self._next))

    def answered(self, now_ps: int, *, num_requests: int) -> None:
        """Note that requests were answered: in a closed loop their users send the next ones now."""
        if self._is_closed:
            room = self._num_requests - len(self.arrival_ps)
            self.arrival_ps.extend([now_ps] * min(num_requests, room))
