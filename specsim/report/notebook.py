"""A run in a notebook's cell: the verdict and the table of both arms."""

from __future__ import annotations

from specsim.report.tables import comparison_head, comparison_rows
from specsim.results.result import SimulationResult


def cell_html(result: SimulationResult) -> str:
    """Return a result as a short piece of HTML.

    Parameters
    ----------
    result
        The run.
    """
    from markupsafe import escape

    summary = result.summary()
    head = "".join(f"<th>{title}</th>" for title in ("", *comparison_head(summary)))
    rows = "".join(
        f"<tr><th>{escape(title)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for title, *cells in comparison_rows(summary)
    )
    return (
        f"<p><strong>{escape(summary['verdict']['text'])}</strong></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
