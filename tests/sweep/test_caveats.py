"""Caveats of a sweep: each once, with the points that it is of, in the words of its runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specsim.engine.simulate import simulate
from specsim.results.reading import Caveat
from specsim.scenario import load_scenario
from specsim.sweep import SweepJob, in_process
from specsim.sweep.caveats import SharedCaveat, shared_caveats

_KINDS = st.sampled_from([Caveat("a"), Caveat("b"), Caveat("c {}", ("1",)), Caveat("c {}", ("2",))])
_LABELS = {"K": [1, 2, 3, 4], "device": ["l4", "l4", "h100", "h100"]}


def _shared(*caveats: list[Caveat], is_replicated: bool = False) -> list[SharedCaveat]:
    return shared_caveats(dict(enumerate(caveats)), _LABELS, is_replicated=is_replicated)


@given(st.lists(st.lists(_KINDS, unique=True), min_size=4, max_size=4))
def test_every_caveat_is_told_once_and_counts_its_points(caveats: list[list[Caveat]]) -> None:
    found = _shared(*caveats)
    words = {caveat.words for one in caveats for caveat in one}
    assert len(found) == len(words)
    assert sorted(one.num_points for one in found) == sorted(
        sum(any(caveat.words == word for caveat in one) for one in caveats) for word in words
    )


@given(st.lists(st.lists(_KINDS, unique=True), min_size=4, max_size=4))
def test_an_axis_that_tells_where_a_caveat_holds_tells_no_other_point(caveats: list[list[Caveat]]) -> None:
    for found in _shared(*caveats):
        if found.axis is not None:
            told = [point for point in range(4) if _LABELS[found.axis][point] in found.values]
            assert len(told) == found.num_points
        elif found.num_points < found.num_known:
            assert found.points


def test_what_holds_on_one_device_is_told_by_its_name() -> None:
    [found] = _shared([], [], [Caveat("a")], [Caveat("a")])
    assert (found.axis, found.values, found.num_points, found.num_known) == ("K", [3, 4], 2, 4)
    labels = {"device": _LABELS["device"]}
    [found] = shared_caveats({2: [Caveat("a")], 0: []}, labels, is_replicated=False)
    assert (found.axis, found.values) == ("device", ["h100"])


def test_what_no_axis_tells_is_told_by_points() -> None:
    [found] = shared_caveats(
        {0: [Caveat("a")], 1: [], 2: [], 3: [Caveat("a")]}, {"K": [1, 1, 2, 2]}, is_replicated=False
    )
    assert (found.axis, found.points) == (None, [0, 3])


def test_numbers_become_a_range_and_names_a_list() -> None:
    errors = [[Caveat("{} off.", (f"{error} %",))] for error in ("4.1", "10", "0.5")]
    assert [one.text for one in _shared(*errors)] == ["0.5 to 10 % off."]
    changes = [[Caveat("{} to {}.", (f"{least} %", "+9 %"))] for least in ("-4", "-12")]
    assert [one.text for one in _shared(*changes)] == ["-12…-4 % to +9 %."]
    names = [[Caveat("On {}.", (name,))] for name in "abcd"]
    assert [one.text for one in _shared(*names)] == ["On a; b; c; and 1 more."]


def test_replications_have_intervals_of_their_own() -> None:
    of_prompts = Caveat("Only 2 prompts.", is_of_prompts=True)
    assert [one.text for one in _shared([of_prompts, Caveat("a")], is_replicated=True)] == ["a"]
    assert len(_shared([of_prompts, Caveat("a")])) == 2


def test_a_sweep_of_one_point_says_what_its_run_says(tmp_path: object) -> None:
    settings = ("workload.num_prompts=3",)
    job = SweepJob.of("laptop", ["K=2"], settings=settings)
    table = job.run(workers=in_process())
    summary = simulate(load_scenario("laptop", overrides=(*settings, f"{job.plan.axes[0].key}=2"))).summary()
    told = [found["text"] for found in table.about["caveats"]]  # type: ignore[index, union-attr, call-overload]
    assert told[-len(summary["known_limitations"]) :] == summary["known_limitations"]
    assert " ".join(told).startswith(summary["how_to_read"])
