"""``specsim prove``: passes, fails with exit 1, refuses bad input, and proves what others register."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from specsim.config.base import Spec
from specsim.speculation import VERIFIERS, BuildContext, TokenVerifier
from tests.cli.command import exit_code

TRACE = Path(__file__).parents[2] / "scenarios" / "traces" / "smollm2_exit24_t0.7.npz"
WORKED = ("--target", ".5,.3,.2", "--draft", ".2,.3,.5", "--requests", "1000")


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = exit_code("prove", *words)
    assert isinstance(code, int)
    return code, *capsys.readouterr()


def test_a_lossless_rule_passes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "block", *WORKED)
    assert code == 0
    assert out.startswith("block: PASS")
    assert "acceptance probability  0.700000" in out


def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "recursive", *WORKED, "--branching", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["passed"] is True
    assert found["max_difference"] < 1e-12
    assert found["acceptance_probability"] == pytest.approx(0.82)
    assert found["expected_tokens"] == pytest.approx(1.82)
    assert sum(part["emitted"] for part in found["law"].values()) == pytest.approx(1)


def test_a_lossy_rule_fails_with_exit_1_and_its_distance(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, "lenience", *WORKED, "--tokens", "1", "--set", "lenience=.5")
    assert code == 1
    assert "lossy by design" in out
    assert "total variation 0.2" in err


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("candidates", "{kind: eagle2, depth: 2, top_k: 2}"),
        ("token", "{kind: lookup}"),
        ("recursive", "{kind: sequoia, acceptance_by_rank: [.5, .2], max_depth: 2}"),
    ],
)
def test_any_draft_source_of_a_scenario_is_proved(
    capsys: pytest.CaptureFixture[str], rule: str, source: str
) -> None:
    words = ("--draft-source", source, "--pairs", "1", "--vocabulary", "2", "--requests", "1000")
    code, out, _ = _run(capsys, rule, *words, "--tokens", "3")
    assert code == 0
    assert "1 of 1 pairs enumerated" in out


def test_random_pairs_are_proved_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "greedy", "--pairs", "2", "--requests", "1000")
    assert code == 0
    assert "2 of 2 pairs enumerated" in out


def test_what_is_too_large_to_enumerate_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(
        capsys, "token", "--tokens", "8", "--vocabulary", "6", "--pairs", "1", "--requests", "2000", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["max_difference"] is None
    assert found["p_value"] > 1e-6


@pytest.mark.parametrize("rule", ["token", "block", "candidates"])
def test_a_recorded_trace_is_proved_by_its_replay(capsys: pytest.CaptureFixture[str], rule: str) -> None:
    code, out, _ = _run(capsys, rule, "--trace", str(TRACE), "--json")
    assert code == 0
    assert json.loads(out)["passed"] is True
    assert json.loads(out)["verifier"] == rule


class _AcceptsAll(TokenVerifier):
    def descend(self, draft, target):  # type: ignore[no-untyped-def]
        return (draft.token >= 0).astype(float)


class _AcceptsAllSpec(Spec):
    """Keeps every draft: wrong, and says it is lossless."""

    kind: Literal["accepts_all"] = "accepts_all"

    def build(self, context: BuildContext) -> _AcceptsAll:
        return _AcceptsAll()


def test_a_rule_of_other_people_is_proved_as_ours_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    VERIFIERS.kinds()
    monkeypatch.setitem(VERIFIERS._specs, "accepts_all", _AcceptsAllSpec)
    code, _, err = _run(capsys, "accepts_all", *WORKED)
    assert code == 1
    assert "accepts_all is not exact" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("blok",), "did you mean 'block'"),
        (("token", "--target", ".5,.5"), "give both or none"),
        (("token", "--target", ".5,x", "--draft", ".5,.5"), "--target '.5,x'"),
        (("token", "--target", ".5,.6", "--draft", ".5,.5"), "target: sums to 1.1"),
        (("kseq", "--branching", "2", "--siblings", "distinct"), "siblings are 'distinct'"),
        (("recursive", "--branching", "2,0"), "--branching '2,0'"),
        (("recursive", "--branching", "2", "--greedy-draft"), "give one at most"),
        (("typical", "--trace", str(TRACE)), "no exact replay"),
        (("lenience",), "lenience"),
        (("token", "--draft-source", "{kind: chian}"), "did you mean 'chain'"),
        (("token", "--draft-source", "{num: 1}"), "names no kind"),
        (("token", "--draft-source", "{kind: eagle2, depth: 0, top_k: 2}"), "depth"),
        (("typical", "--set", "threshold=2"), "threshold"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    code, _, err = _run(capsys, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
