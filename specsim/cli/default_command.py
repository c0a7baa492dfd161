"""A command with commands below it, of which one needs no name."""

from __future__ import annotations

from typing import ClassVar

import typer
from typer.core import TyperGroup


class DefaultCommandGroup(TyperGroup):
    """Words that name no subcommand, ``--help`` too, are those of the default one."""

    default_command: ClassVar[str]

    # Versions of typer differ in whose context this is; ``typer.Context`` derives from either.
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put the name of the default command before words that name none."""
        if not args or args[0] not in self.commands:
            args = [self.default_command, *args]
        return super().parse_args(ctx, args)
