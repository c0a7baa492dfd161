"""Where the rounds of an arm come from: its distributions, draft source, verifier and lookahead policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specsim.engine.prepare import Prepared
from specsim.engine.tree_cost import tree_round_s
from specsim.errors import ConfigError, DomainError, Fault
from specsim.scenario import Scenario
from specsim.scenario.kinds import DraftSourceSpec
from specsim.speculation import (
    BuildContext,
    ChainSpec,
    PlainRounds,
    RoundSource,
    Sequences,
    TreeShape,
    build_rounds,
)
from specsim.speculation.tree import FixedTreeSpec


def rounds_of(prepared: Prepared, *, speculates: bool) -> RoundSource:
    """Return where the rounds of an arm come from; a sampled text is drawn anew in each.

    Raises
    ------
    ConfigError
        Where the verifier or the draft source needs more than the distributions offer.
    """
    scenario, population = prepared.scenario, prepared.population
    if population.distributions.offers != "conditional" and not speculates:
        return PlainRounds()
    context = scenario.build_context()
    distributions = population.distributions
    draft_source, tree = None, None
    if speculates:
        costed = replace(context, tree_round_s=tree_round_s(prepared))
        if distributions.offers == "conditional":
            draft_source = scenario.draft_source_spec.build(costed, distributions)
        else:
            tree = _tree_along_path(scenario.draft_source_spec, costed)
    try:
        return build_rounds(
            distributions,
            scenario.lookahead.build(context),
            scenario.verifier_spec.build(context),
            streams=prepared.streams,
            num_output_tokens=population.num_output_tokens,
            num_speculative_tokens=scenario.num_speculative_tokens if speculates else 0,
            shorten_last_draft=scenario.shorten_last_draft,
            draft_source=draft_source,
            tree=tree,
        )
    except ConfigError as error:
        raise ConfigError([_of_given_key(fault, scenario) for fault in error.faults]) from None


def _of_given_key(fault: Fault, scenario: Scenario) -> Fault:
    """Return the fault of a key that was left out as one of the key that it clashes with."""
    if fault.path == "verifier" and scenario.verifier is None:
        config = scenario.speculative_config
        by_name = config is not None and config.rejection_sample_method is not None
        other = "draft_source" if scenario.draft_source is not None else "distributions"
        return replace(fault, path="speculative_config.rejection_sample_method" if by_name else other)
    return fault


def check_rounds(prepared: Prepared) -> None:
    """Ask for the first round of a scenario, without effect, so that what cannot make it says so.

    Raises
    ------
    ConfigError
        Where the verifier, the draft source or the lookahead does not fit the distributions.
    """
    scenario, population = prepared.scenario, prepared.population
    rounds = rounds_of(prepared, speculates=scenario.speculative_config is not None)
    with_rounds = np.flatnonzero(population.num_output_tokens > 1)[:1]
    if not with_rounds.size:
        return
    left = population.num_output_tokens[with_rounds] - 1
    first = Sequences(request=with_rounds, position=np.ones_like(with_rounds), remaining=left)
    try:
        rounds.peek(first, horizon=1)
    except DomainError as error:
        raise ConfigError.at("distributions", str(error)) from None


def _tree_along_path(spec: DraftSourceSpec, context: BuildContext) -> TreeShape | None:
    """Return the tree that a recorded text is replayed with; None: the chain that was recorded."""
    if isinstance(spec, ChainSpec):
        return None
    if isinstance(spec, FixedTreeSpec) and spec.siblings_in(context) == "certain":
        return spec.shape(context)
    raise ConfigError.at(
        "draft_source",
        "a recorded text has its own draft; beside it there is a tree of the most probable"
        " tokens (tree or sequoia, siblings: certain), no other",
    )
