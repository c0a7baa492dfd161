"""Two pages show the fit of one trace: it is made once."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

import calibrate.calibration


@pytest.fixture(scope="session", autouse=True)
def _equal_traces_are_fitted_once() -> Iterator[None]:
    fit = calibrate.calibration.calibrate
    known: dict[bytes, calibrate.calibration.Calibration] = {}

    def fit_once(*given: object, **named: object) -> calibrate.calibration.Calibration:
        key = pickle.dumps((given, named))
        if key not in known:
            known[key] = fit(*given, **named)  # type: ignore[arg-type]
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate.calibration, "calibrate", fit_once)
        yield
