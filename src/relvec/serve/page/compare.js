// Several pairs as a heat map. It is a table, so that it can be read out and copied.

import { ask } from "./api.js";
import { answering, make, tell } from "./elements.js";
import { linkTo, number, parsePairs, written } from "./words.js";

const MOST = 40;

const section = document.querySelector("#compare");
const form = section.querySelector("form");
const { pairs } = form.elements;

export function show(parameters) {
  const given = parameters.getAll("pair");
  if (!given.length) return;
  pairs.value = given.map((pair) => pair.replace(":", " : ")).join("\n");
  answer();
}

const answer = answering(section, () => pairs, async (signal) => {
  const given = parsePairs(pairs.value, "left");
  const { similarities } = await ask("/similarity", { left: given }, signal);
  return [make("div", { className: "scroll", tabIndex: 0 }, heatMap(given, similarities))];
});

function heatMap(given, similarities) {
  const head = make("tr", {}, make("td"), ...given.map((_, place) => make("th", { scope: "col", textContent: place + 1 })));
  const rows = given.map((pair, row) => {
    const label = make("th", { scope: "row" }, make("small", { textContent: `${row + 1} ` }), make("a", { href: linkTo(pair), textContent: written(pair) }));
    return make("tr", {}, label, ...similarities[row].map((score, column) => cell(score, row === column, `${written(pair)} and ${written(given[column])}`)));
  });
  const told = make("caption", { className: "note", textContent: "The similarity of relations, from −1 to 1" });
  return make("table", { className: "heat" }, told, make("thead", {}, head), make("tbody", {}, ...rows));
}

function cell(score, isSelf, title) {
  const found = make("td", { textContent: number(score), title, className: isSelf ? "self" : score > 0.8 ? "strong" : "" });
  found.style.background = `rgb(var(--accent-rgb) / ${Math.max(0, score) ** 1.6})`;
  return found;
}

export function start(go) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      const given = parsePairs(pairs.value, "left");
      if (!given.length) return pairs.focus();
      if (given.length > MOST) return tell(section, { message: `${given.length} pairs are too many to see; give up to ${MOST}.`, field: "left" }, () => pairs);
      go("compare", new URLSearchParams(given.map(({ head, tail }) => ["pair", `${head}:${tail}`])));
    } catch (problem) {
      tell(section, problem, () => pairs);
    }
  });
}
