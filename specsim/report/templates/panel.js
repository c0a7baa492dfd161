"use strict";
// The live panes: sliders in, numbers and charts out. Everything stays on the page.

const byId = (id) => document.getElementById(id);

function write(id, text) {
  byId(id).textContent = text;
}

function startWhatIf(tables) {
  const select = byId("device");
  tables.devices.forEach((device, number) => {
    const option = document.createElement("option");
    option.value = String(number);
    option.textContent = number ? device.name : `${device.name} (as simulated)`;
    select.append(option);
  });
  byId("acceptance").value = String(tables.start.acceptance_rate);
  byId("lookahead").max = String(tables.lookaheads[tables.lookaheads.length - 1]);
  byId("lookahead").value = String(tables.start.lookahead);
  byId("batch").max = String(tables.batches.length - 1);
  byId("batch").value = String(tables.batches.indexOf(tables.start.batch));
  const redraw = () => {
    drawWhatIf(tables);
    if (tables.cache !== null) drawCache(tables);
  };
  for (const id of ["device", "acceptance", "lookahead", "batch"]) byId(id).addEventListener("input", redraw);
  if (tables.cache !== null) {
    byId("context").max = String(tables.contexts.length - 1);
    byId("context").value = String(Math.max(tables.contexts.findIndex((one) => one >= tables.context_tokens), 1));
    byId("context").addEventListener("input", redraw);
  }
  byId("ratio").addEventListener("input", () => {
    byId("own-ratio").checked = false;
    redraw();
  });
  byId("own-ratio").addEventListener("input", redraw);
  new ResizeObserver(redraw).observe(byId("gain-chart"));
  redraw();
}

function settings(tables) {
  const batchIndex = Number(byId("batch").value);
  return {
    device: tables.devices[Number(byId("device").value)],
    acceptance: Number(byId("acceptance").value),
    lookahead: Number(byId("lookahead").value),
    batchIndex,
    batch: tables.batches[batchIndex],
    ratio: byId("own-ratio").checked ? null : Number(byId("ratio").value),
  };
}

function drawWhatIf(tables) {
  const { device, acceptance, lookahead, batchIndex, batch, ratio } = settings(tables);
  const priced = (length) => priceRound(device, batchIndex, batch, length, acceptance, ratio);
  const round = priced(lookahead);
  write("acceptance-value", acceptance.toFixed(3));
  write("lookahead-value", String(lookahead));
  write("batch-value", String(batch));
  write("device-notes", device.notes.join(". "));
  write("tokens", figure(expectedTokens(acceptance, lookahead)));
  if (round !== null && ratio === null) byId("ratio").value = String(round.draftCostRatio);
  write("ratio-value", round === null ? "-" : figure(round.draftCostRatio));
  write("gain", round === null ? "-" : `${figure(round.gain)}×`);
  write("closed-gain", round === null ? "-" : `${figure(round.closedFormGain)}×`);
  write("token-time", round === null ? "-" : `${withUnit(round.baselineTokenS, "s")} → ${withUnit(round.tokenS, "s")}`);
  write("throughput", round === null ? "-" : `${figure(round.baselineTokensPerS)} → ${figure(round.tokensPerS)}`);
  write("operations", round === null || round.operationsFactor === null ? "-" : `${figure(round.operationsFactor)}×`);
  const hasJoules = round !== null && round.tokenJ !== null;
  write("joules", hasJoules ? `${withUnit(round.baselineTokenJ, "J")} → ${withUnit(round.tokenJ, "J")}` : "-");
  const best = bestLookahead(device, batchIndex, batch, tables.lookaheads, acceptance, ratio);
  write("best", best === null ? "-" : String(best));
  const rounds = tables.lookaheads.map((length) => [length, priced(length)]).filter(([, one]) => one !== null);
  drawChart(byId("gain-chart"), {
    series: [
      { name: `on ${device.name}`, points: rounds.map(([length, one]) => [length, one.gain]) },
      { name: "closed form (Theorem 3.8)", points: rounds.map(([length, one]) => [length, one.closedFormGain]) },
    ],
    xLabel: "draft tokens a round, K",
    yLabel: "wall-time gain, ×",
    xTicks: tables.lookaheads,
    isLog: false,
    level: 1,
    mark: lookahead,
    show: tickText,
  });
  const spoken = rounds.map(([length, one]) => `K ${length}: ${figure(one.gain)}`).join(", ");
  byId("gain-chart").setAttribute("aria-label", `Wall-time gain by lookahead on ${device.name}. ${spoken}`);
}

function drawCache(tables) {
  const { acceptance, lookahead, batchIndex, batch } = settings(tables);
  const of = (index) => bytesPerToken(tables.cache, batchIndex, batch, index, lookahead, acceptance);
  const contextIndex = Number(byId("context").value);
  write("context-value", `${tables.contexts[contextIndex]} tokens`);
  const here = of(contextIndex);
  write("cache-step", here === null ? "-" : withUnit(here.step, "B"));
  write("cache-round", here === null ? "-" : withUnit(here.round, "B"));
  write("cache-baseline", here === null ? "-" : withUnit(here.baseline, "B"));
  write("cache-speculation", here === null ? "-" : withUnit(here.speculation, "B"));
  write("cache-share", here === null ? "-" : `${figure((100 * here.stepCache) / here.step)} % → ${figure((100 * here.roundCache) / here.round)} %`);
  const rows = tables.contexts.map((context, index) => [context, of(index)]).filter(([context, one]) => context > 0 && one !== null);
  drawChart(byId("cache-chart"), {
    series: [
      { name: "baseline, a step", points: rows.map(([context, one]) => [context, one.step]) },
      { name: "speculation, a round", points: rows.map(([context, one]) => [context, one.round]) },
      { name: "speculation, a round ÷ tokens a round", points: rows.map(([context, one]) => [context, one.speculation * batch]) },
    ],
    xLabel: "cached tokens of each sequence",
    yLabel: "bytes moved",
    xTicks: tables.contexts.slice(1),
    isLog: true,
    mark: tables.contexts[contextIndex],
    show: (value) => withUnit(value, "B"),
  });
  const spoken = rows.map(([context, one]) => `${context}: ${withUnit(one.step, "B")} and ${withUnit(one.round, "B")}`).join("; ");
  byId("cache-chart").setAttribute("aria-label", `Bytes of a step and of a round by context. ${spoken}`);
}

const laws = { p: [0.7, 0.3], q: [0.3, 0.7] };

function startTokens() {
  byId("num-tokens").addEventListener("input", () => {
    const count = Number(byId("num-tokens").value);
    laws.p = Array.from({ length: count }, (_, token) => (count - token) / ((count * (count + 1)) / 2));
    laws.q = laws.p.slice().reverse();
    buildTokens();
  });
  buildTokens();
}

function buildTokens() {
  for (const name of ["p", "q"]) {
    const rows = laws[name].map((mass, token) => {
      const row = document.createElement("div");
      row.className = "control";
      const id = `${name}-${token}`;
      const title = document.createElement("label");
      title.htmlFor = id;
      title.textContent = `${name} of token ${String.fromCharCode(65 + token)} `;
      const shown = document.createElement("output");
      shown.htmlFor = id;
      shown.id = `${id}-value`;
      title.append(shown);
      const slider = document.createElement("input");
      Object.assign(slider, { id, type: "range", min: "0", max: "1", step: "0.01", value: String(mass) });
      slider.addEventListener("input", () => {
        laws[name] = withMass(laws[name], token, Number(slider.value));
        drawTokens();
      });
      row.append(title, slider);
      return row;
    });
    byId(`${name}-sliders`).replaceChildren(...rows);
  }
  drawTokens();
}

function drawTokens() {
  const { p, q } = laws;
  for (const name of ["p", "q"]) {
    laws[name].forEach((mass, token) => {
      const slider = byId(`${name}-${token}`);
      slider.value = String(mass);
      write(`${name}-${token}-value`, mass.toFixed(3));
    });
  }
  const kept = acceptanceRate(p, q);
  write("overlap", kept.toFixed(3));
  write("rejected", (1 - kept).toFixed(3));
  drawBars(byId("laws-chart"), p, q, correctionDistribution(p, q));
  const rows = p.map((mass, token) => {
    const row = document.createElement("tr");
    const cells = [mass, q[token], Math.min(mass, q[token]), correctionDistribution(p, q)[token], emittedDistribution(p, q)[token]];
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = String.fromCharCode(65 + token);
    row.append(head, ...cells.map((value) => Object.assign(document.createElement("td"), { textContent: value.toFixed(3) })));
    return row;
  });
  byId("laws-rows").replaceChildren(...rows);
}

function drawBars(box, p, q, correction) {
  const width = Math.max(box.clientWidth, 240);
  const height = 170;
  const base = height - 22;
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const slot = width / p.length;
  const bar = Math.min(slot / 4, 34);
  p.forEach((mass, token) => {
    const middle = slot * (token + 0.5);
    const column = (place, value, name) => {
      const tall = value * (base - 8);
      svg.append(svgElement("rect", { x: middle + place * bar, y: base - tall, width: bar - 2, height: tall, class: name }));
    };
    column(-1.5, mass, "bar-p");
    column(-0.5, q[token], "bar-q");
    column(-0.5, Math.min(mass, q[token]), "bar-kept");
    column(0.5, correction[token], "bar-correction");
    svg.append(svgElement("text", { x: middle, y: height - 6, "text-anchor": "middle" }, String.fromCharCode(65 + token)));
  });
  svg.append(svgElement("line", { x1: 0, x2: width, y1: base, y2: base, class: "level" }));
  box.replaceChildren(svg);
}

if (byId("what-if-tables")) startWhatIf(JSON.parse(byId("what-if-tables").textContent));
if (byId("p-sliders")) startTokens();
window.specsim = { expectedTokens, wallTimeImprovement, operationsFactor, acceptanceRate, correctionDistribution, emittedDistribution, withMass, priceRound, bestLookahead, bytesPerToken };
