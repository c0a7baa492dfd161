"""Where the rounds of an arm come from: its distributions, draft source, verifier and lookahead policy."""

from __future__ import annotations

from dataclasses import replace

from specsim.engine.prepare import Prepared
from specsim.engine.tree_cost import tree_round_s
from specsim.errors import ConfigError
from specsim.scenario.kinds import DraftSourceSpec
from specsim.speculation import BuildContext, ChainSpec, PlainRounds, RoundSource, TreeShape, build_rounds
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


def _tree_along_path(spec: DraftSourceSpec, context: BuildContext) -> TreeShape | None:
    """Return the tree that a recorded text is replayed with; None: the chain that was recorded."""
    if isinstance(spec, ChainSpec):
        return None
    if isinstance(spec, FixedTreeSpec) and spec.siblings_in(context) == "certain":
        return spec.shape(context)
    raise ConfigError(
        "draft_source: a recorded text has its own draft; beside it there is a tree of the most probable"
        " tokens (tree or sequoia, siblings: certain), no other"
    )
