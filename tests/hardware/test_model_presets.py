"""The shipped models: every recorded figure follows from the shape, to the digit."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

import specsim.hardware.model
from specsim.hardware.model import ModelSpec

PRESETS = sorted((Path(specsim.hardware.model.__file__).parent / "presets").glob("*.yaml"))
REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "models.yaml"
FIGURES = ("params_total", "params_active", "kv_elements_per_token")


def read(path: Path) -> dict[str, object]:
    """Return the plain content of a YAML file."""
    return dict(YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8")))


def test_all_27_models_of_the_catalogue_are_shipped() -> None:
    assert len(PRESETS) == 27


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_recorded_figures_follow_from_the_shape(path: Path) -> None:
    model = ModelSpec.model_validate(read(path))
    assert model.recorded is not None
    assert {figure: getattr(model, figure) for figure in FIGURES} == model.recorded.model_dump()


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_names_itself_and_its_source(path: Path) -> None:
    model = ModelSpec.model_validate(read(path))
    assert model.name == path.stem
    assert model.source


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_holds_no_key_that_nothing_reads(path: Path) -> None:
    content = read(path)
    spelled = {"d_model", "d_ff", "d_kv", "num_heads", "num_layers", "num_decoder_layers"}
    spelled |= {"num_local_experts", "n_routed_experts"}
    assert set(content) <= set(ModelSpec.model_fields) | spelled


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference figures are not here")
@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_figures_equal_the_reference_to_the_digit(path: Path) -> None:
    model = ModelSpec.model_validate(read(path))
    reference = read(REFERENCE)["models"]
    assert isinstance(reference, dict)
    assert {figure: getattr(model, figure) for figure in FIGURES} == {
        figure: reference[path.stem][figure] for figure in FIGURES
    }
    imported = ModelSpec.model_validate(reference[path.stem]["config"])
    no_figures = {"name", "source", "recorded", "attention_bias", "qkv_bias"}
    assert imported.model_dump(exclude=no_figures) == model.model_dump(exclude=no_figures)
