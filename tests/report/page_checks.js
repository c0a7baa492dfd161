"use strict";
// What the tests ask of a page in a browser; run outside the page, which runs no foreign script.

const TEXTS = "h1,h2,h3,p,label,dt,dd,td,th,li,summary,figcaption,svg text,input,select";
const READ = "h1,h2,h3,p,label,dt,dd,td,th,li,a,output,figcaption,summary,pre";

const shown = (one) => `${one.tagName} ${one.textContent.trim().slice(0, 40)}`;

// The part of an element's box that its scrolling ancestor shows.
function visibleBox(one) {
  const box = one.getBoundingClientRect();
  const pane = one.closest(".scroll")?.getBoundingClientRect();
  if (!pane) return box;
  const [left, right] = [Math.max(box.left, pane.left), Math.min(box.right, pane.right)];
  const [top, bottom] = [Math.max(box.top, pane.top), Math.min(box.bottom, pane.bottom)];
  return { left, right, top, bottom, width: right - left, height: bottom - top };
}

// Texts that lie on one another, and texts outside the page.
function layout(window, document) {
  const boxes = [...document.querySelectorAll(TEXTS)]
    .filter((one) => !one.closest("details:not([open])") && !one.closest(".skip"))
    .map((one) => [one, visibleBox(one)])
    .filter(([, box]) => box.width > 0 && box.height > 0);
  const overlaps = [];
  boxes.forEach(([a, first], place) => {
    for (const [b, second] of boxes.slice(place + 1)) {
      if (a.contains(b) || b.contains(a)) continue;
      const across = Math.min(first.right, second.right) - Math.max(first.left, second.left);
      const down = Math.min(first.bottom, second.bottom) - Math.max(first.top, second.top);
      // Boxes of neighbouring lines may touch without their letters doing so.
      if (across > 1.5 && down > 2.5) overlaps.push(`${shown(a)} | ${shown(b)}`);
    }
  });
  const page = document.documentElement;
  const outside = boxes
    .filter(([one, box]) => !one.closest(".scroll, pre") && box.right > page.clientWidth + 1)
    .map(([one]) => shown(one));
  return { overlaps, outside, wide: page.scrollWidth - page.clientWidth, number: boxes.length };
}

// Texts whose contrast with their ground is below 4.5 (WCAG 2.1, criterion 1.4.3).
function contrast(window, document) {
  const parse = (color) => (color.match(/[0-9.]+/g) || []).map(Number);
  const linear = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (color) => {
    const [red, green, blue] = parse(color).slice(0, 3).map((part) => linear(part / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (one) => {
    for (let node = one; node; node = node.parentElement) {
      const color = window.getComputedStyle(node).backgroundColor;
      if (parse(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (one) => {
    const [a, b] = [light(window.getComputedStyle(one).color), light(ground(one))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  return [...document.querySelectorAll(READ)].filter((one) => one.textContent.trim() && ratio(one) < 4.5).map(shown);
}

// Controls without a name or out of reach of the keyboard, pictures without words, ids given twice.
function controls(window, document) {
  const found = [...document.querySelectorAll("input, select, [tabindex], summary, a[href]")];
  const named = (one) => one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim();
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return {
    number: found.length,
    nameless: found.filter((one) => !named(one)).map((one) => one.outerHTML),
    skipped: found.filter((one) => one.tabIndex < 0).map((one) => one.outerHTML),
    silent: [...document.querySelectorAll("[role=img]")].filter((one) => !one.getAttribute("aria-label")).length,
    twice: ids.filter((id, place) => ids.indexOf(id) !== place),
  };
}

// The first table before and after it is scrolled to its end: its hint, its shadow, its first column.
function sideways(window, document) {
  const pane = document.querySelector(".scroll");
  const seen = () => ({
    hinted: pane.previousElementSibling.checkVisibility(),
    shadowed: pane.classList.contains("cut"),
    first: pane.querySelector("tbody th").getBoundingClientRect().left >= pane.getBoundingClientRect().left - 1,
  });
  const before = seen();
  pane.scrollLeft = pane.scrollWidth;
  pane.dispatchEvent(new window.Event("scroll"));
  const after = seen();
  pane.scrollLeft = 0;
  pane.dispatchEvent(new window.Event("scroll"));
  return [before, after];
}

// Move sliders and read what the page then says.
function sliders(window, document) {
  const get = (id) => document.getElementById(id);
  const set = (id, value) => {
    get(id).value = value;
    get(id).dispatchEvent(new window.Event("input"));
  };
  const read = (...ids) => ids.map((id) => get(id).textContent);
  const before = get("gain-chart").innerHTML;
  set("acceptance", "0.8");
  set("lookahead", "5");
  const own = [...read("tokens", "batch-value"), get("gain-chart").innerHTML !== before];
  set("ratio", "0.1");
  const given = [...read("ratio-value", "closed-gain"), get("own-ratio").checked];
  set("p-0", "0.4");
  return { own, given, laws: read("p-1-value", "overlap") };
}
