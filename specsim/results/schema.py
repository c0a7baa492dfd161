"""Columns of the result tables, declared once: dtype, unit and meaning.

This declaration makes the tables, their Parquet metadata, the docs and the axis labels. Tables are SI.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 3


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
    Column("guessed_j", "float64", "J", "part of the energy that guessed watts contribute"),
)

PROMPTS: tuple[Column, ...] = (
    Column("arm", "str", "", "baseline or speculation"),
    Column("prompt", "int64", "", "prompt number: the unit of resampling"),
    Column("num_requests", "float64", "", "requests of the prompt; this and all below are sums over them"),
    Column("num_good_requests", "float64", "", "requests within the objectives"),
    Column("num_output_tokens", "float64", "tokens", "tokens emitted"),
    Column("num_tokens", "float64", "tokens", "tokens of prompts and tokens emitted"),
    Column("ttft_s", "float64", "s", "times to the first token"),
    Column("e2el_s", "float64", "s", "times to the last token"),
    Column("tpot_s", "float64", "s", "times per output token after the first"),
    Column("num_with_tpot", "float64", "", "requests of more than one token"),
    Column("decode_s", "float64", "s", "times from the first token to the last"),
    Column("num_decode_tokens", "float64", "tokens", "tokens after the first"),
    Column("num_chunks", "float64", "", "rounds, each a chunk of tokens"),
    Column("itl_s", "float64", "s", "times between chunks"),
    Column("num_drafts", "float64", "", "rounds that draft and that the recording does not cut"),
    Column("num_drafted", "float64", "tokens", "draft tokens proposed in them"),
    Column("num_accepted", "float64", "tokens", "draft tokens accepted in them"),
    Column("num_rejected", "float64", "positions", "positions verified in vain, of all rounds"),
    Column("occupied_s", "float64", "s", "share of the whole time of the run"),
    Column("energy_j", "float64", "J", "share of the energy of the run"),
    Column("cost_usd", "float64", "USD", "share of the cost of the run"),
    Column("decode_flops", "float64", "FLOP", "share of the operations of decode steps"),
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
