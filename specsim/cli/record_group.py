"""``specsim record``: a command with a command below it."""

from __future__ import annotations

import typer

from specsim.cli.default_command import DefaultCommandGroup
from specsim.cli.record import record
from specsim.cli.train_draft import train_draft

_PLAIN = "trace"


class _RecordByDefault(DefaultCommandGroup):
    default_command = _PLAIN


record_group = typer.Typer(
    name="record",
    cls=_RecordByDefault,
    help="Record real token distributions as traces; `record train-draft` trains a draft.",
    add_completion=False,
    rich_markup_mode=None,
)
record_group.command(_PLAIN, hidden=True, epilog="specsim record train-draft trains a draft.")(record)
record_group.command("train-draft")(train_draft)
