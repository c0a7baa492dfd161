"""What holds of the package as a whole: its public names, what it loads, who imports what."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import specsim

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "specsim").rglob("*.py")) + sorted((ROOT / "calibrate").rglob("*.py"))


def test_public_names_are_these() -> None:
    assert specsim.__all__ == ["Scenario", "SimulationResult", "__version__", "load_scenario", "simulate"]


@pytest.mark.parametrize("name", specsim.__all__)
def test_public_name_is_there(name: str) -> None:
    assert getattr(specsim, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        getattr(specsim, "simulat")  # noqa: B009


def _loaded(code: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter holds after running code."""
    script = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


_HEAVY = {"matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "ruamel.yaml", "scipy", "simpy", "torch"}


def test_import_loads_no_library() -> None:
    loaded = _loaded("import specsim")
    assert "specsim" in loaded
    assert not loaded & _HEAVY


def test_help_loads_no_library_but_typer() -> None:
    loaded = _loaded("from specsim.cli.app import main\ntry: main(['--help'])\nexcept SystemExit: pass")
    assert "typer" in loaded
    assert not loaded & (_HEAVY - {"pydantic"})


def test_run_loads_no_slow_statistics() -> None:
    loaded = _loaded(
        "from specsim.cli.app import main\ntry: main(['run', 'two_token_example'])\nexcept SystemExit: pass"
    )
    assert "simpy" in loaded
    assert not {name for name in loaded if name.startswith(("scipy.stats", "matplotlib", "torch"))}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


@pytest.mark.parametrize(("library", "package"), [("simpy", "engine"), ("torch", "recording")])
def test_library_is_imported_by_one_package_only(library: str, package: str) -> None:
    importers = {path for path in SOURCES if any(name.split(".")[0] == library for name in _imports(path))}
    assert importers
    assert all(path.is_relative_to(ROOT / "specsim" / package) for path in importers)


def test_standard_random_numbers_are_used_nowhere() -> None:
    assert not [path for path in SOURCES if "random" in set(_imports(path))]


def _draws(path: Path) -> set[str]:
    """Return what a file uses of numpy's random module, other than the type of a generator."""
    return {
        node.attr
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "random"
        and node.attr != "Generator"
    }


def test_generators_are_made_in_streams_only() -> None:
    assert {path.name: _draws(path) for path in SOURCES if _draws(path)} == {
        "streams.py": {"SeedSequence", "PCG64DXSM"}
    }


def test_every_module_says_what_it_is() -> None:
    silent = [path for path in SOURCES if ast.get_docstring(_tree(path)) is None]
    assert silent == []


def test_every_module_is_short() -> None:
    assert [path.name for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) >= 400] == []


def test_every_dependency_but_torch_has_a_constraint() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = {
        re.split(r"[<>=]", requirement)[0].lower()
        for requirement in [*project["dependencies"], *extras["dev"], *extras["models"]]
    }
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line.split("==")[0].lower().replace("_", "-") for line in lines if not line.startswith("#")]
    assert needed - set(pinned) == {"torch"}
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+]+", line) for line in lines if line[0] != "#")
