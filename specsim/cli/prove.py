"""``specsim prove``: is a verification rule exact? The law of the engine's rounds against the target's."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specsim.arrays import Floats
    from specsim.speculation import ConditionalDistributions, DraftSource, Verifier
    from specsim.speculation.prove import Proof, ReplayProof, RoundLaw, Subject

_MOST_STRINGS = 4096
"""Laws of more strings are left out of the JSON."""


class SiblingMethod(StrEnum):
    """How the children of a node of a tree are made."""

    independent = "independent"
    distinct = "distinct"
    certain = "certain"


def prove(
    verifier: Annotated[str, typer.Argument(help="Kind of a verification rule; see specsim list verifiers.")],
    target: Annotated[
        str | None, typer.Option(help="p, such as .5,.3,.2; random pairs that depend on context if absent.")
    ] = None,
    draft: Annotated[str | None, typer.Option(help="q, over the same tokens.")] = None,
    tokens: Annotated[int, typer.Option(min=1, max=64, help="Drafts in a row, γ.")] = 2,
    branching: Annotated[
        str | None, typer.Option(help="A tree: children of each node by level, such as 2,2.")
    ] = None,
    chains: Annotated[int | None, typer.Option(min=1, max=16, help="Independent chains of γ tokens.")] = None,
    siblings: Annotated[
        SiblingMethod | None, typer.Option(help="How children of a tree's node are made.")
    ] = None,
    is_greedy: Annotated[
        bool, typer.Option("--greedy-draft", help="A chain of the draft's most probable tokens.")
    ] = False,
    draft_source: Annotated[
        str | None,
        typer.Option(help="Any draft source as a scenario has it: '{kind: eagle2, depth: 2, top_k: 2}'."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the rule.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="A recorded trace: prove its replay instead.")] = None,
    pairs: Annotated[int, typer.Option(min=1, max=1000, help="Random pairs.")] = 8,
    vocabulary: Annotated[int, typer.Option(min=2, max=64, help="Tokens of a random pair.")] = 3,
    requests: Annotated[
        int, typer.Option(min=1000, max=10**7, help="Requests counted over two rounds.")
    ] = 20_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of pairs and luck.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove a verification rule lossless, or show by how much it is not (exit 1).

    The law of the next γ+1 tokens is enumerated over every cell of the luck of one of the engine's rounds
    where that is small, and counted over two consecutive rounds in any case.
    """
    from specsim.errors import GateError
    from specsim.speculation.prove import prove as prove_subjects

    rule = _rule(verifier, settings or [], num_speculative_tokens=tokens)
    if trace is not None:
        _finish_replay(trace, verifier, rule, tokens, seed, as_json=as_json)
        return
    subjects = [
        _subject(
            rule,
            pair,
            tokens,
            branching=branching,
            chains=chains,
            siblings=siblings,
            is_greedy=is_greedy,
            draft_source=draft_source,
        )
        for pair in _pairs(rule, target, draft, num_pairs=pairs, vocabulary=vocabulary, seed=seed)
    ]
    proof = prove_subjects(subjects, num_requests=requests, seed=seed)
    typer.echo(
        json.dumps(_as_json(verifier, proof), allow_nan=False) if as_json else _text(verifier, proof, rule)
    )
    if not proof.passed:
        raise GateError(_failure(verifier, proof, is_lossless=rule.is_lossless))


def _rule(kind: str, settings: list[str], *, num_speculative_tokens: int) -> Verifier:
    from specsim.config import override, parse, validate
    from specsim.scenario.kinds import verifier_spec
    from specsim.speculation import VERIFIERS, BuildContext

    document = override(parse(json.dumps({"kind": kind}), file="command line"), settings)
    spec = verifier_spec(validate(VERIFIERS[kind], document))
    return spec.build(BuildContext(num_speculative_tokens=num_speculative_tokens))


def _pairs(
    rule: Verifier, target: str | None, draft: str | None, *, num_pairs: int, vocabulary: int, seed: int
) -> list[ConditionalDistributions]:
    from specsim.errors import ConfigError
    from specsim.speculation import ExplicitDistributions
    from specsim.speculation.markov import random_markov_pair
    from specsim.streams import Purpose, RandomStreams

    if (target is None) != (draft is None):
        raise ConfigError("--target and --draft: give both or none")
    if target is not None and draft is not None:
        return [ExplicitDistributions(_vector("--target", target), _vector("--draft", draft))]
    streams = RandomStreams(seed)
    return [
        random_markov_pair(
            streams.generator(Purpose.PROOF, number),
            vocabulary_size=vocabulary,
            is_certain=getattr(rule, "needs_certain_target", False),
        )
        for number in range(num_pairs)
    ]


def _vector(name: str, text: str) -> Floats:
    import numpy as np

    from specsim.errors import ConfigError

    try:
        return np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise ConfigError(f"{name} '{text}': not numbers with commas between, such as .5,.3,.2") from None


def _subject(
    rule: Verifier,
    pair: ConditionalDistributions,
    tokens: int,
    *,
    branching: str | None,
    chains: int | None,
    siblings: SiblingMethod | None,
    is_greedy: bool,
    draft_source: str | None,
) -> Subject:
    from specsim.errors import ConfigError
    from specsim.speculation import ChainDraft, IndependentChainsDraft, TreeDraft, TreeShape
    from specsim.speculation.prove import Subject

    if sum((branching is not None, chains is not None, is_greedy, draft_source is not None)) > 1:
        raise ConfigError("--branching, --chains, --greedy-draft and --draft-source: give one at most")
    source: DraftSource
    if draft_source is not None:
        source = _named_source(draft_source, pair, num_speculative_tokens=tokens)
    elif branching is not None:
        widths = [int(word) if word.strip().isdecimal() else 0 for word in branching.split(",")]
        if not all(0 < width <= 16 for width in widths):
            raise ConfigError(f"--branching '{branching}': not whole numbers from 1 to 16, such as 2,2")
        allowed = [name for name in ("distinct", "independent", "certain") if name in rule.siblings]
        method = siblings.value if siblings else allowed[0] if allowed else "distinct"
        source = TreeDraft(pair, TreeShape.of_branching(widths), siblings=method)
    elif chains is not None:
        source = IndependentChainsDraft(pair, num_chains=chains, length=tokens)
    else:
        source = ChainDraft(pair, num_tokens=tokens, is_greedy=is_greedy)
    return Subject(pair, source, rule)


def _named_source(text: str, pair: ConditionalDistributions, *, num_speculative_tokens: int) -> DraftSource:
    from specsim.config import parse, validate
    from specsim.config.nodes import Scalar
    from specsim.errors import ConfigError
    from specsim.scenario.kinds import draft_source_spec
    from specsim.speculation import DRAFT_SOURCES, BuildContext

    document = parse(text, file="--draft-source")
    kind = document.get("kind")
    if not isinstance(kind, Scalar) or not isinstance(kind.value, str):
        raise ConfigError(f"--draft-source '{text}': names no kind")
    spec = draft_source_spec(validate(DRAFT_SOURCES[kind.value], document))
    context = BuildContext(num_speculative_tokens=num_speculative_tokens, draft_sample_method="probabilistic")
    return spec.build(context, pair)


def _as_json(verifier: str, proof: Proof) -> dict[str, object]:
    return {
        "verifier": verifier,
        "passed": proof.passed,
        "max_difference": proof.max_difference,
        "total_variation": proof.total_variation,
        "replay_total_variation": proof.replay_total_variation,
        "p_value": proof.p_value,
        "acceptance_probability": proof.acceptance_probability,
        "expected_tokens": proof.expected_tokens,
        "num_pairs": proof.num_pairs,
        "num_enumerated": proof.num_enumerated,
        "law": _worst_law(proof),
    }


def _worst_law(proof: Proof) -> dict[str, dict[str, float]] | None:
    """Law of the pair that is furthest off, over all first tokens: emitted and due, by string of tokens."""
    law = max(proof.laws, key=lambda one: one.total_variation, default=None)
    if law is None or law.emitted.shape[1] > _MOST_STRINGS:
        return None
    emitted, due = law.chance @ law.emitted, law.chance @ law.target
    return {
        _string(number, law): {"emitted": float(emitted[number]), "target": float(due[number])}
        for number in range(emitted.size)
    }


def _string(number: int, law: RoundLaw) -> str:
    words = []
    for _ in range(law.num_tokens):
        number, token = divmod(number, law.vocabulary_size)
        words.append(str(token))
    return ",".join(reversed(words))


def _text(verifier: str, proof: Proof, rule: Verifier) -> str:
    lines = [f"{verifier}: {'PASS' if proof.passed else 'FAIL'}"]
    if proof.total_variation is not None:
        lines.append(
            f"  largest difference      {proof.max_difference:.3g} of a string's probability,"
            f" total variation {proof.total_variation:.3g} ({proof.num_enumerated} of {proof.num_pairs} pairs"
            " enumerated)"
        )
    if proof.replay_total_variation is not None:
        lines.append(
            f"  replay along a text     total variation {proof.replay_total_variation:.3g} from these rounds"
        )
    lines.append(f"  two consecutive rounds  chi-square p-value {proof.p_value:.3g}")
    if proof.acceptance_probability is not None:
        lines.append(f"  acceptance probability  {proof.acceptance_probability:.6f}")
        lines.append(f"  expected tokens         {proof.expected_tokens:.6f} a round, the final one included")
    first = _first_token_law(proof)
    if first:
        lines.append(f"  first token             {first}")
    if not rule.is_lossless:
        lines.append("  The rule is lossy by design: its output does not follow the target's distribution.")
    return "\n".join(lines)


def _first_token_law(proof: Proof) -> str:
    """Law of the first emitted token of a single pair, emitted and due."""
    if len(proof.laws) != 1 or proof.laws[0].vocabulary_size > 16:
        return ""
    law = proof.laws[0]
    shares = [
        ", ".join(
            f"{share:.4g}" for share in (law.chance @ part).reshape(law.vocabulary_size, -1).sum(axis=1)
        )
        for part in (law.emitted, law.target)
    ]
    return f"({shares[0]}), target ({shares[1]})"


def _failure(verifier: str, proof: Proof, *, is_lossless: bool) -> str:
    found = [f"p-value {proof.p_value:.3g}"]
    if proof.replay_total_variation is not None:
        found.insert(0, f"of its replay {proof.replay_total_variation:.3g}")
    if proof.total_variation is not None:
        found.insert(0, f"total variation {proof.total_variation:.3g}")
    return f"{verifier} is {'not exact' if is_lossless else 'lossy, as it says'}: {', '.join(found)}"


def _finish_replay(path: Path, kind: str, rule: Verifier, tokens: int, seed: int, *, as_json: bool) -> None:
    from specsim.errors import GateError
    from specsim.speculation import Trace
    from specsim.speculation.prove import prove_replay

    proof = prove_replay(Trace.load(path), rule, num_speculative_tokens=tokens, seed=seed)
    typer.echo(json.dumps(_replay_json(kind, proof)) if as_json else _replay_text(path, proof))
    if not proof.passed:
        raise GateError(f"{path}: replay is not exact: z {proof.overlap_z:.2f} and {proof.replay_z:.2f}")


def _replay_json(kind: str, proof: ReplayProof) -> dict[str, object]:
    return {
        "verifier": kind,
        "passed": proof.passed,
        "max_difference": abs(proof.acceptance_rate - proof.overlap),
        "acceptance_probability": proof.acceptance_rate,
        "expected_tokens": proof.tokens_per_round,
        "law": None,
        "overlap_z": proof.overlap_z,
        "replay_z": proof.replay_z,
        "num_rounds": proof.num_rounds,
    }


def _replay_text(path: Path, proof: ReplayProof) -> str:
    return "\n".join(
        [
            f"{path}: {'PASS' if proof.passed else 'FAIL'}",
            f"  acceptance along the path {proof.acceptance_rate:.4f}, sum of min(p, q) {proof.overlap:.4f}"
            f" (z {proof.overlap_z:.2f})",
            f"  replay of {proof.num_rounds} rounds   {proof.tokens_per_round:.4f} tokens a round"
            f" (z of its excess {proof.replay_z:.2f})",
        ]
    )
