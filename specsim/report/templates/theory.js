"use strict";
// Closed forms, the same as specsim.speculation.theory and specsim.speculation.sampling.

// Leviathan et al. 2023, Equation 1: (1 - a^(K+1)) / (1 - a).
function expectedTokens(acceptanceRate, lookahead) {
  if (acceptanceRate === 1) return lookahead + 1;
  if (acceptanceRate === 0) return 1;
  return -Math.expm1((lookahead + 1) * Math.log(acceptanceRate)) / (1 - acceptanceRate);
}

// Theorem 3.8.
function wallTimeImprovement(acceptanceRate, lookahead, draftCostRatio) {
  return expectedTokens(acceptanceRate, lookahead) / (lookahead * draftCostRatio + 1);
}

// Theorem 3.11.
function operationsFactor(acceptanceRate, lookahead, draftOperationsRatio) {
  const work = lookahead * draftOperationsRatio + lookahead + 1;
  return work / expectedTokens(acceptanceRate, lookahead);
}

// Theorem 3.5: the overlap of target and draft.
function acceptanceRate(p, q) {
  const overlap = p.reduce((sum, mass, token) => sum + Math.min(mass, q[token]), 0);
  return Math.min(overlap, 1);
}

// Appendix A.1: max(p - q, 0), normalised; p itself where nothing is rejected.
function correctionDistribution(p, q) {
  const residual = p.map((mass, token) => Math.max(mass - q[token], 0));
  const total = residual.reduce((sum, mass) => sum + mass, 0);
  return total > 0 ? residual.map((mass) => mass / total) : p.slice();
}

// The law of the emitted token: kept drafts, and the correction where the draft is rejected.
function emittedDistribution(p, q) {
  const rejected = 1 - acceptanceRate(p, q);
  const correction = correctionDistribution(p, q);
  return p.map((mass, token) => Math.min(mass, q[token]) + rejected * correction[token]);
}

// p with one mass changed and the others in proportion, so that they still sum to 1.
function withMass(p, token, mass) {
  const rest = 1 - p[token];
  const left = 1 - mass;
  return p.map((old, other) => {
    if (other === token) return mass;
    return rest > 0 ? (old * left) / rest : left / (p.length - 1);
  });
}
