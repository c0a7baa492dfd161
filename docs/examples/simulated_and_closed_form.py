"""How far the closed form of Leviathan et al. 2023 carries: one user, then a batch, on an H100."""

from __future__ import annotations

import specsim
from specsim.speculation import theory

ACCEPTANCE_RATE, LOOKAHEAD = 0.7, 4

print("users  simulated  closed form at the cost ratio of one user")
cost_ratio = None
for users in (1, 8, 64):
    overrides = [
        f"workload.max_concurrency={users}",
        "workload.num_prompts=64",
        "workload.output_tokens=64",
        f"speculative_config.num_speculative_tokens={LOOKAHEAD}",
    ]
    result = specsim.simulate(specsim.load_scenario("chat_8b", overrides=overrides))
    if cost_ratio is None:
        decode = result.steps.query("phase == 'decode'")
        drafted = decode[decode["arm"] == "speculation"]
        draft_pass_s = drafted["draft_s"].sum() / drafted["num_draft_passes"].sum()
        cost_ratio = draft_pass_s / decode.loc[decode["arm"] == "baseline", "target_s"].mean()
    predicted = theory.wall_time_improvement(ACCEPTANCE_RATE, LOOKAHEAD, cost_ratio)
    speedup = result.summary()["speedup"]
    assert speedup is not None
    tpot = speedup["tpot"]
    interval = f"{tpot['mean']:.2f}x [{tpot['ci_low']:.2f}, {tpot['ci_high']:.2f}]"
    print(f"{users:5}  {interval:18}  {predicted:.2f}x (c = {cost_ratio:.3f})")
