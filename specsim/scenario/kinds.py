"""The fields of a scenario that plug-ins extend, as unions of all registered kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from specsim.config.base import Spec
from specsim.speculation import DISTRIBUTIONS, DRAFT_SOURCES, LOOKAHEAD_POLICIES, VERIFIERS, BuildContext
from specsim.speculation.distributions import ConditionalDistributions, Distributions
from specsim.speculation.draft import DraftSource
from specsim.speculation.lookahead.policy import LookaheadPolicy
from specsim.speculation.verify.rule import Verifier

if TYPE_CHECKING:

    class DistributionsSpec(Spec):
        """Any registered kind of distributions."""

        kind: str

        def build(self, context: BuildContext) -> Distributions:
            """Return the distributions."""
            ...

    class LookaheadSpec(Spec):
        """Any registered lookahead policy."""

        kind: str

        def build(self, context: BuildContext) -> LookaheadPolicy:
            """Return the policy."""
            ...

    class DraftSourceSpec(Spec):
        """Any registered draft source."""

        kind: str

        def build(self, context: BuildContext, distributions: ConditionalDistributions) -> DraftSource:
            """Return the source."""
            ...

    class VerifierSpec(Spec):
        """Any registered verification rule."""

        kind: str

        def build(self, context: BuildContext) -> Verifier:
            """Return the rule."""
            ...

else:
    DistributionsSpec = DISTRIBUTIONS.union()
    LookaheadSpec = LOOKAHEAD_POLICIES.union()
    DraftSourceSpec = DRAFT_SOURCES.union()
    VerifierSpec = VERIFIERS.union()


def fixed_lookahead() -> LookaheadSpec:
    """Return the policy of a scenario that names none: always ``num_speculative_tokens``."""
    return cast("LookaheadSpec", LOOKAHEAD_POLICIES["fixed"].model_validate({"kind": "fixed"}))


def chain_draft() -> DraftSourceSpec:
    """Return the draft source of a scenario that names none: a chain."""
    return cast("DraftSourceSpec", DRAFT_SOURCES["chain"].model_validate({"kind": "chain"}))


def verifier_spec(spec: BaseModel) -> VerifierSpec:
    """Return a spec that was validated as a verification rule's."""
    return cast("VerifierSpec", spec)


def draft_source_spec(spec: BaseModel) -> DraftSourceSpec:
    """Return a spec that was validated as a draft source's."""
    return cast("DraftSourceSpec", spec)


def verifier_named(kind: str) -> VerifierSpec:
    """Return the verification rule of a kind that needs no settings."""
    return cast("VerifierSpec", VERIFIERS[kind].model_validate({"kind": kind}))


def rates(**given: object) -> DistributionsSpec:
    """Return acceptance by rates; see the keys of kind ``rates``."""
    return cast("DistributionsSpec", DISTRIBUTIONS["rates"].model_validate({"kind": "rates", **given}))
