"""The ``specsim`` command: its subcommands, and what every error is to a shell.

A command's module imports typer and little else at its top, so that ``specsim --help`` is quick; what the
command needs is imported when it runs.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from specsim import __version__
from specsim.cli.check import check
from specsim.cli.compare import compare
from specsim.cli.list_ import list_
from specsim.cli.record import record
from specsim.cli.report import report
from specsim.cli.run import run
from specsim.cli.schema import schema
from specsim.cli.sweep import sweep
from specsim.cli.trace import trace
from specsim.errors import ConfigError, SpecsimError

EXIT_INPUT = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

app = typer.Typer(
    name="specsim",
    help="Does speculative decoding pay on this device, with this target and this draft?",
    epilog="Exit codes: 0 done, 1 an objective or gate failed, 2 bad input, 3 does not fit, 70 our own bug.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run)
app.command("check")(check)
app.command("list")(list_)
app.command("schema")(schema)
app.command("record")(record)
app.command("report")(report)
app.command("sweep")(sweep)
app.command("compare")(compare)
app.add_typer(trace)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _specsim(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # Options before the subcommand; typer shows the help of the app itself.
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the code of what happened.

    Parameters
    ----------
    arguments
        Words after ``specsim``; those of the process by default.

    Raises
    ------
    SystemExit
        Always; the codes are those of `specsim.errors`, 70 for a bug and 130 when interrupted.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(None if arguments is None else list(arguments), prog_name="specsim", standalone_mode=False)
        sys.stdout.flush()
    except SpecsimError as error:
        for line in _lines(error):
            print(line, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _close_pipe()
    except SystemExit as error:
        # The command-line library turns a broken pipe into an exit of its own.
        if isinstance(error.__context__, BrokenPipeError):
            return _close_pipe()
        return error.code if isinstance(error.code, int) else EXIT_INTERNAL
    except typer.Abort:
        return EXIT_INTERRUPTED
    except Exception as error:
        return _unexpected(error)
    return code if isinstance(code, int) else 0


def _lines(error: SpecsimError) -> list[str]:
    faults = error.faults if isinstance(error, ConfigError) else ()
    return [f"specsim: {error}".replace("\n", " ")] if not faults else [str(fault) for fault in faults]


def _unexpected(error: Exception) -> int:
    # Faults of usage have a base class whose module differs between versions of typer.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        print(f"specsim: {format_message()} (see specsim --help)".replace("\n", " "), file=sys.stderr)
        return EXIT_INPUT
    print(f"specsim: internal error, a bug of ours: {type(error).__name__}: {error}", file=sys.stderr)
    traceback.print_exception(error)
    return EXIT_INTERNAL


def _close_pipe() -> int:
    # Whoever reads has gone; without this the interpreter would complain when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_BROKEN_PIPE
