"""A command called in this process."""

from __future__ import annotations

import pytest

from specsim.cli.app import main


def exit_code(*arguments: str) -> int | str | None:
    """Return the exit code of ``specsim`` with these arguments."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code
