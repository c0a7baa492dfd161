"""Which source of rounds serves which distributions."""

from __future__ import annotations

from specsim.arrays import Ints
from specsim.errors import ConfigError
from specsim.speculation.chain import ChainDraft
from specsim.speculation.distributions import Distributions
from specsim.speculation.draft import DraftSource
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.path_rounds import PathRounds
from specsim.speculation.ruled_paths import RuledPaths
from specsim.speculation.sampled_rounds import SampledRounds, refuse_siblings
from specsim.speculation.tree_paths import TreePaths
from specsim.speculation.tree_shape import TreeShape
from specsim.speculation.uniforms import RoundUniforms
from specsim.speculation.verify.rule import Verifier
from specsim.streams import RandomStreams


def build_rounds(
    distributions: Distributions,
    policy: LookaheadPolicy,
    verifier: Verifier,
    *,
    streams: RandomStreams,
    num_output_tokens: Ints,
    num_speculative_tokens: int,
    shorten_last_draft: bool = False,
    draft_source: DraftSource | None = None,
    tree: TreeShape | None = None,
) -> PathRounds | SampledRounds:
    """Return the source of rounds for what the distributions offer.

    Parameters
    ----------
    distributions, policy, verifier
        Where p and q come from, how much to draft, and which drafts are kept.
    streams
        Randomness of the run.
    num_output_tokens
        Tokens at which each request ends at the latest, the first included, [num_requests].
    num_speculative_tokens
        The most that a round drafts, K; 0 is plain decoding.
    shorten_last_draft
        Draft no more than may still be emitted.
    draft_source
        Who drafts from distributions that know any prefix; a sampled chain where absent.
    tree
        Shape of the draft along a path, of the most probable tokens; a chain as recorded where absent.

    Raises
    ------
    ConfigError
        Where the verifier needs more than the distributions offer, or another kind of draft.

    Examples
    --------
    >>> import numpy as np
    >>> from specsim.speculation import Fixed, RatesDistributions, Sequences, TokenVerifier
    >>> rounds = build_rounds(
    ...     RatesDistributions([1.0, 1.0]), Fixed(), TokenVerifier(), streams=RandomStreams(0),
    ...     num_output_tokens=np.array([8]), num_speculative_tokens=2,
    ... )
    >>> start = Sequences(request=np.array([0]), position=np.array([1]), remaining=np.array([7]))
    >>> rounds.peek(start, horizon=9).num_emitted.ravel().tolist()
    [3, 3, 1]
    """
    if distributions.offers != "conditional":
        if draft_source is not None:
            raise ConfigError.at("draft_source", "is for p and q after any prefix; a path fixes the draft")
        refuse_siblings("one" if tree is None else "certain", verifier)
        if tree is not None:
            distributions = TreePaths(distributions, tree)
        depth = num_speculative_tokens if tree is None else tree.depth
        if verifier.needs != "acceptance":
            distributions = RuledPaths(distributions, verifier)
            distributions.check(num_output_tokens, num_speculative_tokens=depth)
        return PathRounds(
            distributions,
            policy,
            streams=streams,
            num_output_tokens=num_output_tokens,
            num_speculative_tokens=depth,
            shorten_last_draft=shorten_last_draft,
            tree=tree,
        )
    if draft_source is None or num_speculative_tokens == 0:
        draft_source = ChainDraft(distributions, num_tokens=num_speculative_tokens)
    return SampledRounds(
        distributions,
        draft_source,
        verifier,
        policy,
        uniforms=RoundUniforms.keyed(streams, num_nodes=draft_source.num_nodes),
        num_output_tokens=num_output_tokens,
        shorten_last_draft=shorten_last_draft,
    )
