"""Where the rounds of an arm come from: its distributions, draft source, verifier and lookahead policy."""

from __future__ import annotations

from dataclasses import replace

from specsim.engine.prepare import Prepared
from specsim.engine.tree_cost import tree_round_s
from specsim.speculation import PlainRounds, RoundSource, build_rounds


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
    draft_source = None
    if speculates and distributions.offers == "conditional":
        draft_source = scenario.draft_source_spec.build(
            replace(context, tree_round_s=tree_round_s(prepared)), distributions
        )
    return build_rounds(
        distributions,
        scenario.lookahead.build(context),
        scenario.verifier_spec.build(context),
        streams=prepared.streams,
        num_output_tokens=population.num_output_tokens,
        num_speculative_tokens=scenario.num_speculative_tokens if speculates else 0,
        shorten_last_draft=scenario.shorten_last_draft,
        draft_source=draft_source,
    )
