"""The reference is what the code says."""

from __future__ import annotations

import re

from docs.make_reference import REFERENCE, reference


def test_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference(), "python -m docs.make_reference"


def test_reference_has_a_heading_for_every_link() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", page)) - headings == set()


def test_every_key_has_a_meaning() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    assert re.findall(r"^\| (`\w+`) .*\|  \|$", page, re.MULTILINE) == []
