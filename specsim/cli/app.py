"""The ``specsim`` command: its subcommands, and what every error is to a shell.

A command's module imports typer and little else at its top, so that ``specsim --help`` is quick; what the
command needs is imported when it runs.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from specsim import __version__
from specsim.cli.calibrate import calibrate
from specsim.cli.check import check
from specsim.cli.compare import compare
from specsim.cli.import_config import import_config
from specsim.cli.list_ import list_
from specsim.cli.prove import prove
from specsim.cli.record_group import record_group
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

_DEVICE_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EROFS, errno.EPIPE})

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
app.command("prove")(prove)
app.command("report")(report)
app.command("import-config")(import_config)
app.command("sweep")(sweep)
app.command("compare")(compare)
app.add_typer(record_group)
app.add_typer(trace)
app.add_typer(calibrate)


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
    _make_writable("stdout")
    _make_writable("stderr")
    try:
        code = _command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _give_up_stdout(EXIT_BROKEN_PIPE)
    except OSError as error:
        print(f"specsim: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        return _give_up_stdout(EXIT_INPUT)
    return code


def _command(arguments: Sequence[str] | None) -> int:
    try:
        code = app(None if arguments is None else list(arguments), prog_name="specsim", standalone_mode=False)
    except SpecsimError as error:
        for line in _lines(error):
            print(_on_one_line(line), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as error:
        # The command-line library turns a broken pipe into an exit of its own.
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        return error.code if isinstance(error.code, int) else EXIT_INTERNAL
    except typer.Abort:
        return EXIT_INTERRUPTED
    except MemoryError:
        print("specsim: out of memory; ask for fewer prompts, tokens or steps", file=sys.stderr)
        return EXIT_INPUT
    except Exception as error:
        # A device that is full or gone is no bug of ours; any other fault of a file is.
        if isinstance(error, OSError) and error.errno in _DEVICE_FAULTS:
            raise
        return _unexpected(error)
    return code if isinstance(code, int) else 0


def _lines(error: SpecsimError) -> list[str]:
    faults = error.faults if isinstance(error, ConfigError) else ()
    return [str(fault) for fault in faults] or [f"specsim: {error}"]


def _on_one_line(text: str) -> str:
    """Return text in which nothing can break the line or steer a terminal."""
    return "".join(
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in text.replace("\n", " ")
    )


def _unexpected(error: Exception) -> int:
    # Faults of usage have a base class whose module differs between versions of typer.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        print(_on_one_line(f"specsim: {format_message()} (see specsim --help)"), file=sys.stderr)
        return EXIT_INPUT
    print(f"specsim: internal error, a bug of ours: {type(error).__name__}: {error}", file=sys.stderr)
    traceback.print_exception(error)
    return EXIT_INTERNAL


def _make_writable(name: Literal["stdout", "stderr"]) -> None:
    """Let a stream take any text: characters that its encoding lacks are written as escapes."""
    stream = getattr(sys, name)
    if stream is None:
        # The shell has closed it; without a stream, what is meant for one would go to the other.
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    elif isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def _give_up_stdout(code: int) -> int:
    # Nobody takes the rest; without this the interpreter would complain when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
