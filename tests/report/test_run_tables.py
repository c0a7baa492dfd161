"""Tables behind the plots of a run: amounts are conserved, and times are those of the steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specsim.engine.simulate import simulate
from specsim.errors import ConfigError
from specsim.report import run_tables as tables
from specsim.report.figures import figure_of, run_plots
from specsim.report.run_files import Run, read_run, run_of
from specsim.results.writer import write
from specsim.scenario import load_scenario


def test_parts_add_up_to_the_whole_of_each_arm(small_run: Run) -> None:
    parts = tables.parts_per_token(small_run, "energy_joules")
    assert parts is not None
    for arm in small_run.arms:
        metrics = small_run.summary["baseline" if arm == "baseline" else "speculation"]
        assert metrics is not None
        total = metrics["total_energy_joules"] / metrics["total_output_tokens"]
        assert parts[arm].sum() == pytest.approx(total)


def test_power_over_time_holds_all_energy(small_run: Run) -> None:
    power = tables.power_over_time(small_run)
    assert power is not None
    for arm, rows in power.groupby("arm"):
        steps = small_run.steps[small_run.steps["arm"] == arm]
        energy_j = float((steps["draft_energy_j"] + steps["target_energy_j"]).sum())
        start_s = steps["start_s"].to_numpy()
        end_s = start_s + (steps["draft_s"] + steps["target_s"]).to_numpy()
        width_s = (end_s.max() - start_s.min()) / len(rows)
        # Steps follow each other without a gap here, so nothing idles.
        assert rows["value"].sum() * width_s == pytest.approx(energy_j, rel=1e-9)


def test_power_is_idle_where_nothing_runs() -> None:
    scenario = load_scenario(
        "laptop",
        overrides=(
            "workload.num_prompts=3",
            "workload.max_concurrency=null",
            "workload.request_rate=0.01",
            "workload.output_tokens=16",
            "show_estimated_energy=true",
        ),
    )
    run = run_of(simulate(scenario))
    power = tables.power_over_time(run)
    assert power is not None
    idle_w = run.summary["baseline"]["static_power_baseline_watts"]
    assert power["value"].min() == pytest.approx(idle_w)


def test_cache_over_time_reaches_the_most_that_a_step_reads(small_run: Run) -> None:
    cache = tables.cache_over_time(small_run)
    decodes = small_run.steps[small_run.steps["phase"] == "decode"]
    for arm, rows in cache.groupby("arm"):
        assert rows["value"].max() == decodes[decodes["arm"] == arm]["context_tokens"].max()


def test_no_operating_point_is_above_the_roof(small_run: Run) -> None:
    from specsim.report.figures import ceiling_of

    points, ceiling = tables.operating_points(small_run), ceiling_of(small_run)
    assert points is not None
    assert ceiling is not None
    roof = np.minimum(points["flops_per_byte"] * ceiling.bandwidth_bytes_per_s, ceiling.peak_flops_per_s)
    assert (points["flops_per_s"] <= roof).all()
    assert set(points["name"]) >= {"decode, baseline", "verify", "draft", "prefill"}


def test_draft_on_its_own_device_is_not_drawn_below_the_targets_roof() -> None:
    overrides = ("hardware.draft=rtx-4090", "workload.num_prompts=2", "workload.output_tokens=16")
    points = tables.operating_points(run_of(simulate(load_scenario("laptop", overrides=overrides))))
    assert points is not None
    assert not [name for name in points["name"] if "draft" in name]


def test_bars_of_one_request_do_not_overlap_in_a_lane(small_run: Run) -> None:
    bars = tables.request_gantt(small_run, request=1)
    assert set(bars["lane"]) == {"baseline: target", "speculation: draft", "speculation: target"}
    for _, lane in bars.groupby("lane"):
        ends = (lane["start_s"] + lane["duration_s"]).to_numpy()
        assert np.all(lane["start_s"].to_numpy()[1:] >= ends[:-1] - 1e-9)


def test_gantt_of_a_waiting_request_shows_the_wait(small_run: Run) -> None:
    scenario = load_scenario(
        "laptop",
        overrides=(
            "workload.num_prompts=3",
            "workload.max_concurrency=null",
            "workload.request_rate=1000",
            "scheduler.max_num_seqs=1",
            "workload.output_tokens=16",
        ),
    )
    bars = tables.request_gantt(run_of(simulate(scenario)), request=2)
    waits = bars[bars["activity"] == "waits"]
    assert len(waits)
    assert (waits["start_s"] == 0.0).all()


def test_withheld_joules_give_no_plot_of_them(small_run: Run) -> None:
    scenario = load_scenario("laptop", overrides=("workload.num_prompts=2", "workload.output_tokens=16"))
    names = {plot.name for plot in run_plots(run_of(simulate(scenario)))}
    assert not names & {"energy_joules", "power"}
    assert {plot.name for plot in run_plots(small_run)} >= {"energy_joules", "power"}


@pytest.mark.parametrize(
    "setting", ["speculative_config.num_speculative_tokens=0", "speculative_config=null"]
)
def test_run_without_drafts_has_a_figure(setting: str) -> None:
    result = simulate(load_scenario("two_token_example", overrides=("workload.num_prompts=4", setting)))
    assert len(figure_of(result).axes) >= 2


def test_run_read_from_its_folder_is_the_run(tmp_path: Path) -> None:
    result = simulate(load_scenario("two_token_example", overrides=("workload.num_prompts=4",)))
    write(result, tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.summary == result.summary()
    np.testing.assert_array_equal(run.steps["target_s"], result.steps["target_s"])
    assert list(run.requests["arm"]) == list(result.requests["arm"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "is no summary"),
        ('{"schema_version": 999}', "schema_version is 999"),
        ('{"schema_version": 3}', "is no summary of a run: specsim_version: Field required"),
        ('{"schema_version": 3, "seed": NaN}', "NaN is no number"),
    ],
)
def test_what_is_not_a_run_is_refused_in_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        read_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_table_that_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    write(
        simulate(load_scenario("two_token_example", overrides=("workload.num_prompts=2",))), tmp_path / "run"
    )
    (tmp_path / "run" / "steps.parquet").write_bytes(b"no parquet")
    with pytest.raises(ConfigError, match=r"steps\.parquet: cannot be read"):
        read_run(tmp_path / "run")
