"""Columns of the result tables, declared once: dtype, unit and meaning.

This declaration makes the tables, their Parquet metadata, the docs and the axis labels. Tables are SI.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    dtype: str
    unit: str
    meaning: str


REQUESTS: tuple[Column, ...] = (
    Column("arm", "str", "", "baseline or speculation"),
    Column("request", "int64", "", "request number; the same request in both arms"),
    Column("prompt", "int64", "", "prompt number: the unit of resampling"),
    Column("request_class", "str", "", "class of the request, such as its domain"),
    Column("arrival_s", "float64", "s", "time at which the request arrived"),
    Column("first_token_s", "float64", "s", "time at which its first token was emitted"),
    Column("finish_s", "float64", "s", "time at which its last token was emitted"),
    Column("num_prompt_tokens", "int64", "tokens", "tokens of the prompt"),
    Column("num_output_tokens", "int64", "tokens", "tokens emitted, the first included"),
    Column(
        "ended_by", "str", "", "eos, stop, cap, or recorder: cut by the recording, its last round censored"
    ),
)

STEPS: tuple[Column, ...] = (
    Column("arm", "str", "", "baseline or speculation"),
    Column("step", "int32", "", "step number within the arm: a prefill pass, or a whole round of the batch"),
    Column("phase", "str", "", "prefill or decode"),
    Column("start_s", "float64", "s", "time at which the step began"),
    Column("draft_s", "float64", "s", "time of the draft passes"),
    Column("target_s", "float64", "s", "time of the target pass"),
    Column("num_sequences", "int64", "", "sequences in the batch"),
    Column("num_positions", "int64", "positions", "positions computed by the target"),
    Column("num_draft_passes", "int64", "", "draft passes: the longest chain in the batch"),
    Column("num_draft_positions", "int64", "positions", "positions computed by the draft"),
    Column("num_drafted", "int64", "tokens", "draft tokens proposed"),
    Column("num_accepted", "int64", "tokens", "draft tokens accepted, of the emitted"),
    Column("num_emitted", "int64", "tokens", "tokens emitted"),
    Column("context_tokens", "int64", "tokens", "cached tokens read by the target"),
    Column("memory_s", "float64", "s", "target: time that the bytes need"),
    Column("compute_s", "float64", "s", "target: time that the arithmetic needs"),
    Column("attention_s", "float64", "s", "target: attention"),
    Column("communication_s", "float64", "s", "target: all-reduce and all-to-all"),
    Column("overhead_s", "float64", "s", "target: launch and host time"),
    Column("draft_energy_j", "float64", "J", "energy of the draft passes"),
    Column("target_energy_j", "float64", "J", "energy of the target pass"),
    Column("draft_flops", "float64", "FLOP", "operations of the draft passes"),
    Column("target_flops", "float64", "FLOP", "operations of the target pass"),
    Column("draft_bytes", "float64", "B", "bytes moved by the draft passes"),
    Column("target_bytes", "float64", "B", "bytes moved by the target pass"),
    Column("target_clock_fraction", "float64", "", "target: clock as a fraction of the nominal clock"),
    Column("limit_s", "float64", "s", "physical limit of draft and target passes at datasheet peaks"),
    Column("limit_j", "float64", "J", "physical limit of their energy, by the boards' own slopes"),
    Column("device_limit_j", "float64", "J", "floor of the chips' energy alone; 0 where it is not known"),
)

ROUNDS: tuple[Column, ...] = (
    Column("arm", "str", "", "baseline or speculation"),
    Column("step", "int32", "", "step in which the round ran"),
    Column("request", "int32", "", "request number"),
    Column("num_drafted", "int32", "tokens", "draft tokens proposed"),
    Column("num_accepted", "int32", "tokens", "draft tokens accepted, of the emitted"),
    Column("num_emitted", "int32", "tokens", "tokens emitted"),
    Column("is_censored", "bool", "", "the recording ends inside the round: not counted in acceptance"),
)
