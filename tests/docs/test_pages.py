"""Every command and code block of README and docs runs, and prints what the page shows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from docs.run_blocks import ROOT, Runner, blocks, is_as_shown, pages, stale_claims

NOT_RUN = {"needs a checkout": 1, "needs make and a network": 1, "needs torch": 4, "needs a log": 1}
"""Blocks left out, by reason. One more is one claim fewer that is tested: say so here."""


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_page_runs_as_shown(page: Path) -> None:
    stale = stale_claims(page.read_text(encoding="utf-8"))
    assert not stale, "\n".join(map(str, stale)) + "\nwrite them anew: python -m docs.run_blocks --write"


def test_blocks_that_are_not_run_are_counted() -> None:
    marks = Counter(
        block.not_run
        for page in pages()
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.not_run
    )
    assert marks == NOT_RUN


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "howto").glob("*.md")), ids=_name)
def test_index_leads_to_every_howto(page: Path) -> None:
    assert f"](howto/{page.name})" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_output_that_differs_is_stale() -> None:
    (claim,) = stale_claims("```console\n$ specsim list policies\npolicies: none\n```\n")
    assert "policies: confidence" in claim.printed
    assert claim.line == 2


def test_output_of_python_that_differs_is_stale() -> None:
    (claim,) = stale_claims("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    assert claim.printed == "1\n"


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ specsim list nosuch\n...\n```\n",
        "```\nspecsim list nosuch\n```\n",
        "```sh\nmake demo\n```\n",
        "```console\nno command\n```\n",
        "```rust\nfn main() {}\n```\n",
        "```yaml\nname: without a file\n```\n",
        "```yaml\n# bad.yaml\nhardware: {target: nosuch}\n```\n",
    ],
)
def test_block_that_fails_or_cannot_run_is_refused(block: str) -> None:
    with pytest.raises(RuntimeError, match="line 2"):
        stale_claims(block)


def test_failure_may_be_shown_with_its_code() -> None:
    page = "```console\n$ specsim check nosuch.yaml\nnosuch.yaml: no such file\n$ echo $?\n2\n```\n"
    assert stale_claims(page) == []


def test_marked_block_is_not_run() -> None:
    assert list(Runner().stale("<!-- not run: a test -->\n```sh\nmake demo\n```\n")) == []


@pytest.mark.parametrize(
    ("shown", "printed", "is_shown"),
    [
        ("a\n", "a  \n\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\n", True),
        ("a\n...\nb\n", "a\nx\ny\nb\n", True),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("a.b\n", "axb\n", False),
    ],
)
def test_dots_stand_for_what_is_left_out(shown: str, printed: str, is_shown: bool) -> None:
    assert is_as_shown(shown, printed) is is_shown
