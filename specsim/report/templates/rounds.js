"use strict";
// What a round costs: tables of the cost models and the closed forms put together; no cost is made here.

// One device at a batch (its place in the tables) and a lookahead. A given draftCostRatio takes the
// place of the device's own draft passes: their time, and their joules in proportion.
// Returns null where the batch does not fit or is outside what the profile covers.
function priceRound(device, batchIndex, batch, lookahead, acceptance, draftCostRatio) {
  const targets = device.target_s[batchIndex];
  if (targets === null) return null;
  const baseS = targets[0];
  const ownDraftS = device.draft_s[batchIndex];
  const ownRatio = ownDraftS[1] / baseS;
  const ratio = draftCostRatio === null ? ownRatio : draftCostRatio;
  const draftS = draftCostRatio === null ? ownDraftS[lookahead] : draftCostRatio * lookahead * baseS;
  const tokens = expectedTokens(acceptance, lookahead);
  const roundS = draftS + targets[lookahead];
  return {
    tokens,
    draftCostRatio: ratio,
    closedFormGain: wallTimeImprovement(acceptance, lookahead, ratio),
    gain: (tokens * baseS) / roundS,
    baselineTokenS: baseS,
    tokenS: roundS / tokens,
    baselineTokensPerS: batch / baseS,
    tokensPerS: (batch * tokens) / roundS,
    ...operations(device, batchIndex, lookahead, acceptance, tokens),
    ...joules(device, batchIndex, batch, lookahead, tokens, ownDraftS[lookahead], draftS),
  };
}

function operations(device, batchIndex, lookahead, acceptance, tokens) {
  const target = device.target_flops[batchIndex];
  const draft = device.draft_flops[batchIndex];
  if (target[0] > 0) return { operationsFactor: (draft[lookahead] + target[lookahead]) / (tokens * target[0]) };
  if (device.draft_flops_ratio === null) return { operationsFactor: null };
  return { operationsFactor: operationsFactor(acceptance, lookahead, device.draft_flops_ratio) };
}

function joules(device, batchIndex, batch, lookahead, tokens, ownDraftS, draftS) {
  const target = device.target_j === null ? null : device.target_j[batchIndex];
  if (target === null) return { baselineTokenJ: null, tokenJ: null };
  const draftJ = device.draft_j[batchIndex][lookahead] * (ownDraftS > 0 ? draftS / ownDraftS : 1);
  return { baselineTokenJ: target[0] / batch, tokenJ: (draftJ + target[lookahead]) / (batch * tokens) };
}

// Lookahead of the least time a token, the smallest where several are equal; null where nothing is known.
function bestLookahead(device, batchIndex, batch, lookaheads, acceptance, draftCostRatio) {
  let best = null;
  let least = Infinity;
  for (const lookahead of lookaheads) {
    const round = priceRound(device, batchIndex, batch, lookahead, acceptance, draftCostRatio);
    if (round !== null && round.tokenS < least) {
      best = lookahead;
      least = round.tokenS;
    }
  }
  return best;
}

// Bytes that one emitted token costs, of the whole batch's passes; and the part that is KV cache.
function bytesPerToken(cache, batchIndex, batch, contextIndex, lookahead, acceptance) {
  const target = cache.target_bytes[batchIndex][contextIndex];
  const empty = cache.target_bytes[batchIndex][0];
  if (target === null || empty === null) return null;
  const draft = cache.draft_bytes[batchIndex][contextIndex];
  const emptyDraft = cache.draft_bytes[batchIndex][0];
  const tokens = batch * expectedTokens(acceptance, lookahead);
  const round = draft[lookahead] + target[lookahead];
  return {
    step: target[0],
    round,
    baseline: target[0] / batch,
    speculation: round / tokens,
    stepCache: target[0] - empty[0],
    roundCache: round - emptyDraft[lookahead] - empty[lookahead],
  };
}
