"""Accelerator profiles as files: what is accepted, what is refused, where every figure comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from pytest_regressions.data_regression import DataRegressionFixture

from specsim.config import names, parse, validate
from specsim.errors import ConfigError
from specsim.hardware import AcceleratorProfile, RooflineProfile, load_model, load_profile
from specsim.hardware.provenance import figures
from tests.hardware.shapes import decode

_EXAMPLE = """
name: h100-sxm
kind: roofline                     # roofline | table | unit
memory: {bandwidth_bytes_per_s: 3.35e12, capacity_bytes: 80e9}
parallel_positions: 228
peak_flops_per_s: {bfloat16: 989e12, float8: 1978e12, int8: 1978e12}
efficiency: {memory: {value: 0.88, standard_error: 0.02}, compute: {value: 0.68, standard_error: 0.03}}
overhead: {step_s: 330e-6, layer_s: 28e-6, sequence_s: 63e-6, draft_step_floor_s: 1e-4,
           smooth_exponent: 2.2, tile_positions: 64, unpack_s: 0}
power: {idle_w: 70, active_w: 110, memory_w: 470, clock_w: 70, compute_w: 600, cap_w: 700,
        clock: {knee_fraction: 0.8, slope: 1.8}}
links: {intra_node_bandwidth_bytes_per_s: 450e9, allreduce_latency_s: 4.3e-6}
price: {usd_per_hour: 2.5}
provenance:
  memory.bandwidth_bytes_per_s: {source: "vendor datasheet", tag: read}
  power.compute_w: {source: "prior", tag: estimated}
valid: {num_positions: [1, 4096], context_tokens: [0, 131072]}
"""
_SHIPPED = sorted(names("hardware_profiles"))


def _figures(profile: AcceleratorProfile) -> dict[str, float]:
    given = profile.model_dump(exclude_unset=True, exclude={"provenance", "valid", "fitted"})
    return {path.removesuffix(".value"): value for path, value in figures(given)}


def _read(text: str) -> RooflineProfile:
    return validate(RooflineProfile, parse(text))


def test_every_key_of_a_hardware_profile_is_read() -> None:
    profile = _read(_EXAMPLE)
    assert profile.efficiency.memory.standard_error == 0.02
    assert profile.power is not None
    assert profile.power.clock is not None
    assert profile.power.clock.slope == 1.8
    assert profile.ridge_positions == pytest.approx(228, rel=0.01)
    assert (
        profile.cost_model(load_model("llama-3.1-8b"), tensor_parallel_size=2).steps(decode()).limit_s[0] > 0
    )


def test_a_profile_without_kind_is_a_roofline() -> None:
    given = {"name": "x", "memory": {"bandwidth_bytes_per_s": "1 TB/s", "capacity_bytes": "24 GB"}}
    adapter: TypeAdapter[Any] = TypeAdapter(AcceleratorProfile)
    assert isinstance(adapter.validate_python(given | {"parallel_positions": 100}), RooflineProfile)


@pytest.mark.parametrize("name", _SHIPPED)
def test_parallel_positions_and_peak_are_two_views_of_one_number(name: str) -> None:
    profile = load_profile(f"{name}.datasheet")
    assert isinstance(profile, RooflineProfile)
    data = profile.model_dump(exclude_unset=True)
    peak = profile.peak(profile.plain_dtype)
    by_positions = RooflineProfile.model_validate(
        data | {"peak_flops_per_s": {}, "parallel_positions": profile.ridge_positions}
    )
    assert by_positions.peak(by_positions.plain_dtype) == pytest.approx(peak)
    assert by_positions.ridge_positions == pytest.approx(profile.ridge_positions)


def test_parallel_positions_must_agree_with_the_peak() -> None:
    with pytest.raises(ConfigError, match=r"parallel_positions: 250 disagrees with 228\.1 by peak"):
        _read(_EXAMPLE.replace("228", "250"))


def test_a_profile_needs_parallel_positions_or_a_peak() -> None:
    lines = [line for line in _EXAMPLE.splitlines() if not line.startswith(("parallel", "peak"))]
    with pytest.raises(ConfigError, match="give parallel_positions or peak_flops_per_s of one of bfloat16"):
        _read("\n".join(lines))


@pytest.mark.parametrize(("name", "positions"), [("a100-sxm-80g", 129), ("h100-sxm", 227), ("a40", 185)])
def test_ridges_follow_the_fits_of_layer_times(name: str, positions: int) -> None:
    profile = load_profile(f"{name}.datasheet")
    assert isinstance(profile, RooflineProfile)
    assert profile.ridge_positions == pytest.approx(positions, rel=0.01)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3.35e12", "-1", r"memory.bandwidth_bytes_per_s: .*greater than 0"),
        ("3.35e12", '"3 GHz"', "memory.bandwidth_bytes_per_s: .*unknown unit"),
        ("value: 0.88", "value: 1.2", "efficiency.memory.value: .*less than or equal to 1"),
        ("active_w: 110", "active_w: 700", r"power.active_w: 700 W is not below the cap of 700 W"),
        ("idle_w: 70", "idle_w: 120", r"power.idle_w: 120 W is more than active_w of 110 W"),
        ("slope: 1.8", "slope: 1.8, max_fraction: 1.5", "power.clock.max_fraction: 1.5 times .* exceeds"),
        ("tag: read", "tag: guessed", "allowed: read, derived, measured, given, estimated, prior"),
        ("bfloat16: 989e12", "bf16: 989e12", "bf16"),
        ("[1, 4096]", "[4096, 1]", r"valid.num_positions: \[4096, 1\] is not a range"),
        (
            "smooth_exponent: 2.2",
            "smooth_exponent: 0.5",
            "overhead.smooth_exponent: .*greater than or equal to 1",
        ),
        (
            "tile_positions: 64",
            "tile_position: 64",
            r"overhead.tile_position: unknown key \(did you mean 'tile_positions'",
        ),
    ],
)
def test_a_bad_figure_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    assert old in _EXAMPLE
    with pytest.raises(ConfigError, match=message):
        _read(_EXAMPLE.replace(old, new, 1))


def test_energy_rests_on_a_guess_where_a_figure_is_tagged_so_or_has_no_source() -> None:
    read = '{source: "meter", tag: measured}'
    whole = _EXAMPLE.replace("provenance:\n", f"provenance:\n  power: {read}\n")
    assert _read(whole).is_power_estimated
    assert not _read(whole.replace('{source: "prior", tag: estimated}', read)).is_power_estimated
    assert _read(_EXAMPLE.replace('{source: "prior", tag: estimated}', read)).is_power_estimated


def test_a_calibrated_profile_states_its_held_out_error() -> None:
    assert not _read(_EXAMPLE).is_fitted
    fitted = _read(_EXAMPLE + "fitted: {data: our trace, held_out_error: 0.04, num_rows: 96}\n")
    assert fitted.is_fitted
    assert fitted.held_out_error == 0.04


def test_waiting_power_is_idle_power_unless_given() -> None:
    assert _read(_EXAMPLE).waiting_w == 70
    assert _read(_EXAMPLE.replace("idle_w: 70", "idle_w: 70, idle_context_w: 100")).waiting_w == 100


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(_EXAMPLE.replace("kind: roofline", "kind: rooflin"))
    with pytest.raises(ConfigError, match="kind: 'rooflin' is not allowed; known: roofline, table, unit"):
        load_profile(str(path))


def test_a_misspelt_profile_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'h100-sxm'"):
        load_profile("h100-smx")


def test_all_devices_of_the_catalogue_are_shipped() -> None:
    catalogue = (
        "tpu-v4 tpu-v5e a100-sxm-40g a100-sxm-80g h100-sxm h200-sxm b200-sxm l4 l40s a10g t4 v100-sxm2"
        " rtx-3090 rtx-4090 rtx-5090 rtx-pro-6000 a40 rtx-a6000 mi300x jetson-agx-orin m2-ultra m4-max"
        " core-i9-13900k ideal"
    )
    assert set(catalogue.split()) <= set(_SHIPPED)


@pytest.mark.parametrize("name", _SHIPPED)
def test_every_figure_of_a_shipped_profile_has_a_source(name: str) -> None:
    profile = load_profile(f"{name}.datasheet")
    assert [path for path in _figures(profile) if profile.source_of(path) is None] == []


@pytest.mark.parametrize("name", _SHIPPED)
def test_every_source_of_a_shipped_profile_belongs_to_a_figure(name: str) -> None:
    profile = load_profile(f"{name}.datasheet")
    given = _figures(profile)
    for path in profile.provenance:
        assert any(figure == path or figure.startswith(f"{path}.") for figure in given), path


def test_recalled_figures_are_tagged_estimated() -> None:
    for name in _SHIPPED:
        for path, source in load_profile(f"{name}.datasheet").provenance.items():
            is_recalled = "recalled" in source.source
            assert not is_recalled or source.tag == "estimated", (name, path)


def test_figures_change_with_their_sources_only(data_regression: DataRegressionFixture) -> None:
    """A figure that changes fails until it is recorded anew beside its source (``--force-regen``)."""
    recorded = {}
    for name in _SHIPPED:
        profile = load_profile(f"{name}.datasheet")
        for path, value in _figures(profile).items():
            source = profile.source_of(path)
            assert source is not None, (name, path)
            recorded[f"{name} {path}"] = f"{value:.10g} | {source.tag} | {source.source}"
    data_regression.check(recorded, basename="figures")


@pytest.mark.parametrize("name", _SHIPPED)
def test_every_shipped_profile_serves_a_model(name: str) -> None:
    profile = load_profile(f"{name}.datasheet")
    costs = profile.cost_model(load_model("smollm2-135m")).steps(decode(positions=[1, 5], context=500))
    assert (costs.duration_ps > costs.limit_s * 1e12 * (1 - 1e-9)).all()
    assert (costs.energy_nj > 0).all() == profile.has_power
