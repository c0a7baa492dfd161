"""``specsim record``: a command with a command below it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from specsim.cli.record import record
from specsim.cli.train_draft import train_draft

_PLAIN = "trace"


class _RecordGroup(TyperGroup):
    """``record TARGET …`` without the name of a command records a trace."""

    # The context is click's own in some versions of typer and a copy of it in others.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [_PLAIN, *args]
        return super().parse_args(ctx, args)


record_group = typer.Typer(
    name="record",
    cls=_RecordGroup,
    help="Record real token distributions as traces; `record train-draft` trains a draft.",
    add_completion=False,
    rich_markup_mode=None,
)
record_group.command(_PLAIN, hidden=True)(record)
record_group.command("train-draft")(train_draft)
