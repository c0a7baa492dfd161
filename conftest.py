"""Where libraries of the extra ``models`` are not installed, the modules that import them are left out.

Any other module that cannot be imported fails the run; its examples would else pass unseen.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection, Iterator
from pathlib import Path

_ROOT = Path(__file__).parent
_LIBRARIES = ("torch", "transformers", "safetensors")


def _modules_without(libraries: Collection[str]) -> Iterator[str]:
    """Yield the paths of the modules of ``specsim.recording`` whose import ends at one of these libraries."""
    for path in sorted((_ROOT / "specsim" / "recording").glob("*.py")):
        try:
            importlib.import_module(f"specsim.recording.{path.stem}")
        except ImportError as error:
            if error.name in libraries:
                yield str(path)


_MISSING = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
collect_ignore = list(_modules_without(_MISSING)) if _MISSING else []
