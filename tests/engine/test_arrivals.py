"""The queue: a closed loop keeps its number of users, an open stream its times."""

from __future__ import annotations

import numpy as np

from specsim.engine.arrivals import ArrivalQueue


def test_a_closed_loop_has_as_many_requests_under_way_as_users() -> None:
    queue = ArrivalQueue(5, arrival_ps=None, max_concurrency=2)
    assert queue.admit(0, room=10) == [0, 1]
    assert queue.next_arrival_ps() is None
    queue.answered(70, num_requests=1)
    assert queue.next_arrival_ps() == 70
    assert queue.admit(70, room=10) == [2]
    queue.answered(90, num_requests=2)
    assert queue.admit(90, room=10) == [3, 4]
    queue.answered(99, num_requests=2)
    assert queue.next_arrival_ps() is None


def test_a_full_batch_leaves_requests_waiting_in_order() -> None:
    queue = ArrivalQueue(4, arrival_ps=None, max_concurrency=4)
    assert queue.admit(0, room=3) == [0, 1, 2]
    assert queue.admit(0, room=0) == []
    assert queue.admit(5, room=1) == [3]


def test_an_open_stream_admits_what_has_arrived_the_instant_included() -> None:
    queue = ArrivalQueue(3, arrival_ps=np.array([10, 20, 30]), max_concurrency=1)
    assert queue.admit(9, room=5) == []
    assert queue.admit(20, room=5) == [0, 1]
    queue.answered(25, num_requests=2)
    assert queue.next_arrival_ps() == 30
