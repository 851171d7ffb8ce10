// A table of pairs: the vectors, or the names of the relations, to download.

import { askPatiently, settings } from "./api.js";
import { make, tell } from "./elements.js";
import { number, parsePairs, typeset } from "./words.js";

const EXAMPLE = ["barista\tcoffee", "Paris\tFrance", "wheel\tbicycle", "virus\tflu", "hot\tcold", "oak\ttree", "music\tpizza"];
const SHOWN = 12;

const section = document.querySelector("#table");
const form = section.querySelector("form");
const { rows: field, labels, vectors } = form.elements;
const progress = section.querySelector("progress");
const result = section.querySelector(".result");

export function show() {}

async function inParts(path, pairs, answersOf) {
  const found = [];
  progress.max = pairs.length;
  progress.value = 0;
  progress.hidden = false;
  for (let start = 0; start < pairs.length; start += settings.maxPairs) {
    const part = pairs.slice(start, start + settings.maxPairs);
    try {
      found.push(...answersOf(await askPatiently(path, { pairs: part })));
    } catch (problem) {
      const [, place, word] = /^pairs\.(\d+)(?:\.(\w+))?/.exec(problem.field ?? "") ?? [];
      if (place) problem.message = `Row ${start + Number(place) + 1}${word ? `, ${word}` : ""}: ${problem.message}`;
      throw problem;
    }
    progress.value = start + part.length;
  }
  return found;
}

function labelsTable(pairs, explanations) {
  const rows = explanations.map(({ relations, relatedness }, place) => {
    const [best] = relations;
    return [pairs[place].head, pairs[place].tail, best.name, best.reversed ? "reversed" : "", best.probability.toFixed(3), relatedness.toFixed(3), best.sentence];
  });
  return [["head", "tail", "relation", "direction", "probability", "relatedness", "sentence"], ...rows];
}

function vectorsTable(pairs, found) {
  const columns = found[0].map((_, place) => `v${place}`);
  return [["head", "tail", ...columns], ...found.map((vector, place) => [pairs[place].head, pairs[place].tail, ...vector.map((each) => each.toPrecision(7))])];
}

function offer(name, table, shown) {
  const text = table.map((row) => row.map((cell) => String(cell).replace(/[\t\n]/g, " ")).join("\t")).join("\n");
  const address = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/tab-separated-values" }));
  const link = make("a", { href: address, download: name, textContent: name });
  const size = text.length > 1e6 ? `${(text.length / 1e6).toFixed(1)} MB` : `${Math.ceil(text.length / 1e3)} kB`;
  const told = make("p", { className: "answer" }, "Download ", link, make("small", { className: "count", textContent: ` ${(table.length - 1).toLocaleString("en")} rows, ${size}` }));
  const [head, ...rows] = shown;
  const preview = make(
    "table",
    { className: "preview" },
    make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col", textContent: cell })))),
    make("tbody", {}, ...rows.slice(0, SHOWN).map((row) => make("tr", {}, ...row.map((cell) => make("td", { textContent: cell }))))),
  );
  const more = rows.length > SHOWN ? make("p", { className: "note", textContent: `… and ${(rows.length - SHOWN).toLocaleString("en")} more` }) : null;
  result.replaceChildren(told, make("div", { className: "scroll", tabIndex: 0 }, preview), ...(more ? [more] : []));
}

async function run(wanted) {
  result.replaceChildren();
  tell(section, null);
  labels.disabled = vectors.disabled = true;
  try {
    const pairs = parsePairs(field.value, "pairs");
    if (!pairs.length) return field.focus();
    if (wanted === "labels") {
      const table = labelsTable(pairs, await inParts("/explain", pairs, ({ explanations }) => explanations));
      const shown = table.map(([head, tail, name, direction, probability, , sentence], row) => [head, tail, row ? `${name.replaceAll("-", " ")}${direction ? " (reversed)" : ""}` : name, row ? number(Number(probability)) : probability, typeset(sentence)]);
      offer("relations.tsv", table, shown);
    } else {
      const table = vectorsTable(pairs, await inParts("/embed", pairs, ({ vectors: found }) => found));
      offer("vectors.tsv", table, table.map((row) => row.slice(0, 6).map((cell, place) => (place > 1 && !isNaN(cell) ? number(Number(cell)) : cell))));
    }
  } catch (problem) {
    tell(section, problem, () => field);
  } finally {
    labels.disabled = vectors.disabled = false;
    progress.hidden = true;
  }
}

export function start() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(event.submitter?.name ?? "labels");
  });
  field.addEventListener("input", () => {
    const count = field.value.split("\n").filter((line) => line.trim()).length;
    section.querySelector(".count").textContent = count ? `${count.toLocaleString("en")} ${count === 1 ? "pair" : "pairs"}` : "";
  });
  section.querySelector("[name=fill]").addEventListener("click", () => {
    field.value = EXAMPLE.join("\n");
    field.dispatchEvent(new Event("input"));
    run("labels");
  });
}
