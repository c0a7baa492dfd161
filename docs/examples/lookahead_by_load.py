"""A schedule of lookaheads by load: the best number of draft tokens for each number of users."""

from __future__ import annotations

import specsim

LOOKAHEADS = (1, 2, 4, 6)


def speedup(users: int, lookahead: int) -> float:
    """Return the speed-up per user of ``chat_8b``."""
    overrides = [
        f"workload.max_concurrency={users}",
        "workload.num_prompts=64",
        "workload.output_tokens=64",
        f"speculative_config.num_speculative_tokens={lookahead}",
    ]
    found = specsim.simulate(specsim.load_scenario("chat_8b", overrides=overrides)).summary()["speedup"]
    assert found is not None
    assert found["tpot"]["mean"] is not None
    return found["tpot"]["mean"]


print("users  " + "  ".join(f"K={lookahead}" for lookahead in LOOKAHEADS) + "   best")
for users in (1, 8, 64):
    speedups = {lookahead: speedup(users, lookahead) for lookahead in LOOKAHEADS}
    best = max(speedups, key=speedups.__getitem__)
    print(f"{users:5}  " + "  ".join(f"{value:.2f}" for value in speedups.values()) + f"  K={best}")
