"""What pytest makes of a module that cannot be imported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("broken", ["import nosuch", "from json import nosuch"])
def test_module_that_cannot_be_imported_fails_the_run(broken: str, pytester: pytest.Pytester) -> None:
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, pytester.path)
    pytester.makepyfile(
        sound='"""An example.\n\n>>> 1\n1\n"""', broken=f'"""An example.\n\n>>> 1\n1\n"""\n{broken}'
    )
    pytester.runpytest_inprocess("sound.py", "broken.py").assert_outcomes(errors=1)
    pytester.runpytest_inprocess("sound.py").assert_outcomes(passed=1)
