"""What docs/verification.md says of which rule runs with which draft source on what is known of p and q."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "verification.md"
SIBLINGS = ("", ", siblings: independent", ", siblings: distinct", ", siblings: certain")
SOURCES: dict[str, list[str]] = {
    "chain": ["{kind: chain}"],
    "lookup": ["{kind: lookup}"],
    "tree": [f"{{kind: tree, branching: [2]{how}}}" for how in SIBLINGS],
    "sequoia": [f"{{kind: sequoia, acceptance_by_rank: [.5, .2]{how}}}" for how in SIBLINGS],
    "eagle2": ["{kind: eagle2, depth: 1, top_k: 2}"],
    "independent_chains": ["{kind: independent_chains, num_chains: 2}"],
}
"""Draft sources of two tokens, in every way that siblings are made."""


def served() -> dict[str, list[set[str]]]:
    """Draft sources of each rule, column by column, as the page has them."""
    section = PAGE.read_text().partition("## Which rules run on what")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {
        rule.strip("`"): [set() if cell == "–" else set(cell.split(", ")) for cell in cells]
        for rule, *cells in rows
    }
