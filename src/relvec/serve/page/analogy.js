// An analogy question: the stem, its choices, and how similar each is.

import { ask } from "./api.js";
import { answering, bars, make, tell } from "./elements.js";
import { linkTo, parsePairs, written } from "./words.js";

const section = document.querySelector("#analogy");
const form = section.querySelector("form");
const { stem, choices } = form.elements;

const fieldOf = (name) => (name.startsWith("stem") ? stem : name.startsWith("choices") ? choices : null);

export function show(parameters) {
  const given = parameters.getAll("choice");
  if (!parameters.get("stem") || !given.length) return;
  stem.value = parameters.get("stem").replace(":", " : ");
  choices.value = given.map((choice) => choice.replace(":", " : ")).join("\n");
  answer();
}

const answer = answering(section, fieldOf, async (signal) => {
  const [asked] = parsePairs(stem.value, "stem");
  const given = parsePairs(choices.value, "choices");
  const { answer: best, scores } = await ask("/solve", { stem: asked, choices: given }, signal);
  const order = scores.map((_, place) => place).sort((one, other) => scores[other] - scores[one]);
  const rows = order.map((place) => ({ text: written(given[place]), href: linkTo(given[place]), score: scores[place], best: place === best }));
  const told = make("p", { className: "answer" }, `${asked.head} is to ${asked.tail} as `, make("b", { textContent: given[best].head }), " is to ", make("b", { textContent: given[best].tail }), ".");
  return [told, bars(rows)];
});

export function start(go) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      const parameters = new URLSearchParams();
      const [asked] = parsePairs(stem.value, "stem");
      if (!asked) return stem.focus();
      parameters.set("stem", `${asked.head}:${asked.tail}`);
      const given = parsePairs(choices.value, "choices");
      if (!given.length) return choices.focus();
      for (const choice of given) parameters.append("choice", `${choice.head}:${choice.tail}`);
      go("analogy", parameters);
    } catch (problem) {
      tell(section, problem, fieldOf);
    }
  });
}
