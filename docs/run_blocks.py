"""Run the commands and code blocks of Markdown pages, compare what they print with what the page shows.

``python -m docs.run_blocks PAGE...`` says which blocks are stale; with ``--write`` it puts what is printed
into the page. Blocks are told apart by the word after the fence:

- ``console``: ``$ specsim ...``, ``$ ls FOLDER`` or ``$ python EXAMPLE.py``, and below it what it prints. A
  line ``...`` stands for any lines, ``...`` within a line for anything. ``$ echo $?`` shows the exit code;
  one that is not 0 must be shown.
- no word, or ``sh``: commands a line, their output not shown; each must end with 0.
- ``python``: code; a ``text`` block right below is what it prints. Blocks of a page share their names.
- ``yaml``: a file of the name in its first line (``# my.yaml``); a scenario among them is checked.

Blocks of a page run in order in one temporary folder, which holds a link to ``calibrate``.
``<!-- not run: why -->`` above a block leaves it out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- not run: (.+?) -->\n\n?\Z")
_COMMAND = re.compile(r"^(?:\$ |specsim |make |pip |python )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    word: str
    """What follows the fence: console, python, yaml, text, or nothing."""
    text: str
    start: int
    """Offset of the text in the page."""
    line: int
    not_run: str | None
    """Why it is left out, if it is marked so."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A claim of a page that does not hold."""

    line: int
    command: str
    shown: str
    printed: str
    start: int
    """Offset of what is shown in the page."""

    def __str__(self) -> str:
        """Return the claim and what was printed instead."""
        return f"line {self.line}: {self.command}\n--- shown\n{self.shown}--- printed\n{self.printed}"


def pages() -> list[Path]:
    """Return every page whose blocks must run: the README and all of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: str) -> list[Block]:
    r"""Return the fenced blocks of a page, in order.

    Examples
    --------
    >>> [(b.word, b.not_run) for b in blocks("<!-- not run: needs torch -->\n```sh\nspecsim run\n```\n")]
    [('sh', 'needs torch')]
    """
    found = []
    for match in _FENCE.finditer(page):
        mark = _MARK.search(page[: match.start()])
        line = page.count("\n", 0, match.start(2)) + 1
        found.append(
            Block(match.group(1), match.group(2), match.start(2), line, mark.group(1) if mark else None)
        )
    return found


def is_as_shown(shown: str, printed: str) -> bool:
    r"""Tell whether a text is as shown, where ``...`` stands for lines or a part of one.

    Examples
    --------
    >>> is_as_shown("one\n...\nfour\n", "one\ntwo\nthree\nfour\n")
    True
    >>> is_as_shown("one\n...\nfive\n", "one\ntwo\nthree\nfour\n")
    False
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*?") + r"\n"
        for line in _tidy(shown).splitlines()
    )
    return re.fullmatch(pattern, _tidy(printed)) is not None


def as_short(shown: str, printed: str) -> str:
    r"""Return what is printed without the lines that the page leaves out, or all of it where that is unclear.

    What follows ``...`` is found by its words before the first digit.

    Examples
    --------
    >>> as_short("best 1\n...\nlast 9\n", "best 2\nother\nlast 8\n")
    'best 2\n...\nlast 8\n'
    """
    first, *others = [part.splitlines() for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    lines = printed.splitlines()
    if not others:
        return printed
    kept, left = lines[: len(first)], lines[len(first) :]
    for part in others:
        kept.append("...")
        if part:
            starts = [at for at, line in enumerate(left) if _words(line) == _words(part[0])]
            if not starts:
                return printed
            kept, left = kept + left[starts[0] : starts[0] + len(part)], left[starts[0] + len(part) :]
    return "".join(f"{line}\n" for line in kept)


def _words(line: str) -> str:
    return re.split(r"\d", line, maxsplit=1)[0].strip()


def _tidy(text: str) -> str:
    """Return a text without spaces at line ends and empty lines at its end."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


@dataclass(slots=True)
class Runner:
    """Runs the blocks of one page in the current folder."""

    code: int = 0
    """Exit code of the last command."""
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})

    def stale(self, page: str) -> Iterator[Stale]:
        """Run all blocks of a page; yield each claim that does not hold.

        Raises
        ------
        RuntimeError
            For a command that fails without showing it, or a block that is neither run nor marked.
        """
        found = blocks(page)
        for block, after in zip(found, [*found, None][1:], strict=True):
            if block.not_run is not None:
                continue
            if block.word == "console":
                yield from self._console(block)
            elif block.word == "python":
                yield from self._python(block, _output_of(page, block, after))
            elif block.word == "yaml":
                self._file(block)
            elif block.word in ("", "sh") and _COMMAND.search(block.text):
                for command in block.text.replace("\\\n", " ").splitlines():
                    self._must_succeed(block, command)
            elif block.word not in ("", "text"):
                raise RuntimeError(f"line {block.line}: blocks of {block.word!r} are not run; mark it")

    def _console(self, block: Block) -> Iterator[Stale]:
        parts = list(re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE))
        if not parts or parts[0].start() != 0:
            raise RuntimeError(f"line {block.line}: a console block begins with '$ '")
        commands = [part.group(1).replace("\\\n", " ") for part in parts]
        for part, command, following in zip(parts, commands, [*commands[1:], ""], strict=True):
            printed = self._run(block, command)
            if self.code != 0 and following != "echo $?":
                raise RuntimeError(f"line {block.line}: {command}: exit code {self.code}\n{printed}")
            if not is_as_shown(part.group(2), printed):
                start = block.start + part.start(2)
                yield Stale(block.line, command, part.group(2), _tidy(printed), start)

    def _python(self, block: Block, output: Block | None) -> Iterator[Stale]:
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            exec(compile(block.text, f"block at line {block.line}", "exec"), self.names)
        if output is not None and not is_as_shown(output.text, stream.getvalue()):
            yield Stale(output.line, "python", output.text, _tidy(stream.getvalue()), output.start)

    def _file(self, block: Block) -> None:
        named = re.match(r"# (\S+\.yaml)\b", block.text)
        if named is None:
            raise RuntimeError(f"line {block.line}: the first line of a yaml block names its file")
        Path(named.group(1)).write_text(block.text, encoding="utf-8")
        if re.search(r"^hardware:", block.text, re.MULTILINE):
            self._must_succeed(block, f"specsim check {named.group(1)}")

    def _must_succeed(self, block: Block, command: str) -> None:
        printed = self._run(block, command)
        if self.code != 0:
            raise RuntimeError(f"line {block.line}: {command}: exit code {self.code}\n{printed}")

    def _run(self, block: Block, command: str) -> str:
        try:
            return self.run(command)
        except ValueError as error:
            raise RuntimeError(f"line {block.line}: {error}") from None

    def run(self, command: str) -> str:
        """Run one command in this process and return what it prints on both streams."""
        words = shlex.split(command, comments=True)
        if words == ["echo", "$?"]:
            code, self.code = self.code, 0
            return f"{code}\n"
        if words[0] == "ls":
            return "".join(f"{path.name}\n" for path in sorted(Path(words[1]).iterdir()))
        if words[0] == "python" and len(words) == 2:
            return _printed_by(EXAMPLES / words[1])
        if words[0] != "specsim":
            raise ValueError(f"{command}: not among the commands that are run; mark the block")
        from specsim.cli.app import main

        # A sweep's table is the same on any number of workers; one starts no further processes.
        one_worker = ["-j", "1"] if words[1] == "sweep" and not {"-j", "--jobs"} & set(words) else []
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            try:
                main([*words[1:], *one_worker])
            except SystemExit as done:
                self.code = done.code if isinstance(done.code, int) else int(done.code is not None)
        return stream.getvalue()


def _printed_by(script: Path) -> str:
    """Run a script as a program and return what it prints."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        runpy.run_path(str(script), run_name="__main__")
    return stream.getvalue()


def _output_of(page: str, block: Block, after: Block | None) -> Block | None:
    """Return the text block that stands right below a block of code."""
    if after is None or after.word != "text":
        return None
    between = page[block.start + len(block.text) : after.start]
    return after if between.split() == ["```", "```text"] else None


@contextlib.contextmanager
def _in_empty_folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # Pages name the example trace by its path in a checkout.
        Path("calibrate").symlink_to(ROOT / "calibrate")
        yield


def stale_claims(page: str) -> list[Stale]:
    """Run a page in an empty folder and return its claims that do not hold."""
    os.environ["MPLBACKEND"] = "Agg"
    os.environ["COLUMNS"] = "100"
    with _in_empty_folder():
        return list(Runner().stale(page))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pages; say which claims are stale, or write what is printed into them."""
    parser = argparse.ArgumentParser(description="Run the commands and code blocks of Markdown pages.")
    parser.add_argument("pages", nargs="*", type=Path, default=pages())
    parser.add_argument("--write", action="store_true", help="put what is printed into the pages")
    given = parser.parse_args(arguments)
    num_stale = 0
    for path in given.pages:
        page = path.read_text(encoding="utf-8")
        claims = stale_claims(page)
        num_stale += len(claims)
        for claim in claims:
            print(f"{path}: {claim}")
        if given.write and claims:
            for claim in reversed(claims):
                page = (
                    page[: claim.start]
                    + as_short(claim.shown, claim.printed)
                    + page[claim.start + len(claim.shown) :]
                )
            path.write_text(page, encoding="utf-8")
    return 0 if given.write or not num_stale else 1


if __name__ == "__main__":
    sys.exit(main())
