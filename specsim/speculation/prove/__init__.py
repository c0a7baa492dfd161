"""Proofs of verification rules: the law of what the engine's own rounds emit, against the target's."""

from specsim.speculation.prove.exact import RoundLaw, round_law
from specsim.speculation.prove.proof import Proof, prove
from specsim.speculation.prove.replay import ReplayProof, prove_replay
from specsim.speculation.prove.subject import Subject
from specsim.speculation.prove.two_rounds import two_rounds_p_value

__all__ = [
    "Proof",
    "ReplayProof",
    "RoundLaw",
    "Subject",
    "prove",
    "prove_replay",
    "round_law",
    "two_rounds_p_value",
]
