"use strict";
// A line chart in SVG, drawn to the width of its box; every series has a dash and a marker of its own.

const SVG = "http://www.w3.org/2000/svg";
const LOOKS = [
  { color: "#0072b2", dash: "", marker: "circle" },
  { color: "#b34c00", dash: "6 3", marker: "square" },
  { color: "#00664b", dash: "2 3", marker: "triangle" },
  { color: "#000000", dash: "8 3 2 3", marker: "diamond" },
];

function svgElement(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Round steps between least and most: 1, 2 or 5 times a power of ten.
function niceTicks(least, most, count) {
  const raw = (most - least) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= raw);
  const ticks = [];
  for (let place = Math.ceil(least / step); place * step <= most * (1 + 1e-12); place += 1) ticks.push(place * step);
  return ticks;
}

function markerPath(kind, x, y, size) {
  const [a, b, c, d] = [x - size, x + size, y - size, y + size];
  if (kind === "square") return `M${a} ${c}H${b}V${d}H${a}Z`;
  if (kind === "triangle") return `M${x} ${c}L${b} ${d}H${a}Z`;
  if (kind === "diamond") return `M${x} ${c - 1}L${b + 1} ${y}L${x} ${d + 1}L${a - 1} ${y}Z`;
  return `M${a} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`;
}

// chart: {series: [{name, points: [[x, y]]}], xLabel, yLabel, xTicks: [number], isLog, level, mark, show}
function drawChart(box, chart) {
  const width = Math.max(box.clientWidth, 240);
  const height = 260;
  const edge = { left: 62, right: 22, top: 12, bottom: 44 };
  const known = chart.series.flatMap((series) => series.points.map((point) => point[1]));
  if (chart.level !== undefined) known.push(chart.level);
  const most = known.length ? Math.max(...known) * 1.08 : 1;
  const xs = chart.xTicks;
  const along = (x) => (chart.isLog ? Math.log2(x) : x);
  const [first, last] = [along(xs[0]), along(xs[xs.length - 1])];
  const inner = { width: width - edge.left - edge.right, height: height - edge.top - edge.bottom };
  const placeX = (x) => edge.left + (inner.width * (along(x) - first)) / (last - first || 1);
  const placeY = (y) => edge.top + inner.height * (1 - y / most);
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (const tick of niceTicks(0, most, 5)) {
    const y = placeY(tick);
    svg.append(svgElement("line", { x1: edge.left, x2: width - edge.right, y1: y, y2: y, class: "grid" }));
    svg.append(svgElement("text", { x: edge.left - 6, y: y + 4, "text-anchor": "end" }, chart.show(tick)));
  }
  const every = Math.ceil(xs.length / Math.max(inner.width / 44, 1));
  xs.forEach((x, number) => {
    if (number % every) return;
    const text = chart.isLog ? shortCount(x) : String(x);
    svg.append(svgElement("text", { x: placeX(x), y: height - 26, "text-anchor": "middle" }, text));
  });
  svg.append(svgElement("text", { x: edge.left + inner.width / 2, y: height - 6, "text-anchor": "middle" }, chart.xLabel));
  const turned = `translate(12 ${edge.top + inner.height / 2}) rotate(-90)`;
  svg.append(svgElement("text", { transform: turned, "text-anchor": "middle" }, chart.yLabel));
  if (chart.level !== undefined) {
    const y = placeY(chart.level);
    svg.append(svgElement("line", { x1: edge.left, x2: width - edge.right, y1: y, y2: y, class: "level" }));
  }
  if (chart.mark !== undefined) {
    const x = placeX(chart.mark);
    svg.append(svgElement("line", { x1: x, x2: x, y1: edge.top, y2: height - edge.bottom, class: "mark" }));
  }
  chart.series.forEach((series, number) => {
    const look = LOOKS[number];
    const places = series.points.map(([x, y]) => [placeX(x), placeY(y)]);
    const path = places.map(([x, y], place) => `${place ? "L" : "M"}${x} ${y}`).join("");
    svg.append(svgElement("path", { d: path, fill: "none", stroke: look.color, "stroke-width": 2, "stroke-dasharray": look.dash }));
    for (const [x, y] of places) svg.append(svgElement("path", { d: markerPath(look.marker, x, y, 3.2), fill: look.color }));
  });
  box.replaceChildren(svg, chartLegend(chart.series));
}

function chartLegend(series) {
  const legend = document.createElement("ul");
  legend.className = "legend";
  series.forEach((one, number) => {
    const look = LOOKS[number];
    const item = document.createElement("li");
    const key = svgElement("svg", { width: 34, height: 12, "aria-hidden": "true" });
    key.append(svgElement("path", { d: "M0 6H34", stroke: look.color, "stroke-width": 2, "stroke-dasharray": look.dash }));
    key.append(svgElement("path", { d: markerPath(look.marker, 17, 6, 3.2), fill: look.color }));
    item.append(key, ` ${one.name}`);
    legend.append(item);
  });
  return legend;
}

function shortCount(count) {
  return count >= 1024 ? `${count / 1024}k` : String(count);
}

// Three significant digits, larger ones whole: the rule of the tables (specsim/report/numbers.py).
function figure(value) {
  if (value === null || value === undefined) return "-";
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toExponential(2);
  return Math.abs(value) >= 999.5 ? value.toFixed(0) : value.toPrecision(3);
}

function tickText(value) {
  return String(Number(value.toPrecision(3)));
}

// A value with the SI prefix that fits, such as 4.56 ms or 16.1 GB.
function withUnit(value, unit) {
  if (value === null || value === undefined) return "-";
  const prefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const [size, prefix] = prefixes.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  return `${Number((value / size).toPrecision(3))} ${prefix}${unit}`;
}
