"""Outcomes on disk, one file a run under its key: written whole or not at all, by any number of processes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from specsim.results.reading import Caveat
from specsim.sweep.outcome import Outcome
from specsim.writing import is_alive, write_faults, write_whole


class Store:
    """A folder of outcomes by key.

    Parameters
    ----------
    folder
        Made at the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Outcome | None:
        """Return the outcome of a key, or None where there is none."""
        try:
            content = json.loads((self.folder / f"{key}.json").read_bytes())
            caveats = [Caveat(**{**one, "details": tuple(one["details"])}) for one in content["caveats"]]
            outcome = Outcome(**{**content, "caveats": tuple(caveats)})
        except (OSError, ValueError, TypeError, KeyError):
            # Absent, or from a machine that went down before the file reached its disk: simulated anew.
            return None
        return outcome if outcome.key == key else None

    def put(self, outcome: Outcome) -> None:
        """Keep an outcome, unless a rerun might come out otherwise.

        Raises
        ------
        ConfigError
            If the folder cannot be written.
        """
        if not outcome.is_lasting or not outcome.key:
            return
        with write_faults(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / f"{outcome.key}.json", json.dumps(asdict(outcome), allow_nan=False))

    def clean(self) -> None:
        """Remove what processes that died while writing have left."""
        for left in self.folder.glob(".*.*"):
            process = left.name.rpartition(".")[2]
            if process.isdigit() and not is_alive(int(process)):
                left.unlink(missing_ok=True)
