// A missing word: a is to b as c is to what?

import { ask } from "./api.js";
import { answering, bars, make } from "./elements.js";
import { linkTo } from "./words.js";

const section = document.querySelector("#complete");
const form = section.querySelector("form");
const fields = ["a", "b", "c"].map((name) => form.elements[name]);

const fieldOf = (name) => (name === "head" ? fields[2] : name.endsWith("head") ? fields[0] : name.endsWith("tail") ? fields[1] : null);

export function show(parameters) {
  fields.forEach((field) => (field.value = parameters.get(field.name) ?? field.value));
  if (parameters.get("a")) return answer();
}

const answer = answering(section, fieldOf, async (signal) => {
  const [head, tail, third] = fields.map((field) => field.value.trim());
  const { words } = await ask("/complete", { pair: { head, tail }, head: third, top: 10 }, signal);
  const told = make("p", { className: "answer" }, `${head} is to ${tail} as ${third} is to `, make("b", { textContent: words[0].word }), ".");
  const rows = words.map(({ word, score }, rank) => ({ text: word, href: linkTo({ head: third, tail: word }), score, best: rank === 0 }));
  return [told, bars(rows)];
});

export function start(go) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const empty = fields.find((field) => !field.value.trim());
    if (empty) return empty.focus();
    go("complete", new URLSearchParams(fields.map((field) => [field.name, field.value.trim()])));
  });
}
