"""Where prompt lookup pays: the speed-up of each domain of a recorded trace."""

from __future__ import annotations

import specsim

result = specsim.simulate("prompt_lookup")
requests = result.requests.assign(decode_s=lambda table: table["finish_s"] - table["first_token_s"])

print("domain         prompts  speed-up")
for domain, rows in requests.groupby("request_class"):
    decode_s = rows.groupby("arm")["decode_s"].sum()
    speedup = decode_s["baseline"] / decode_s["speculation"]
    print(f"{domain:13}  {rows['prompt'].nunique():7}  {speedup:7.2f}x")
