// An analogy question: the stem, its choices, and how similar each is.

import { ask } from "./api.js";
import { bars, latest, make, tell } from "./elements.js";
import { linkTo, number, parsePairs, written } from "./words.js";

const section = document.querySelector("#analogy");
const form = section.querySelector("form");
const { stem, choices } = form.elements;
const result = section.querySelector(".result");

const fieldOf = (name) => (name.startsWith("stem") ? stem : name.startsWith("choices") ? choices : null);

export function show(parameters) {
  const given = parameters.getAll("choice");
  if (!parameters.get("stem") || !given.length) return;
  stem.value = parameters.get("stem").replace(":", " : ");
  choices.value = given.map((choice) => choice.replace(":", " : ")).join("\n");
  answer();
}

const answer = latest(async (signal) => {
  result.classList.add("pending");
  try {
    const question = { stem: parsePairs(stem.value, "stem")[0], choices: parsePairs(choices.value, "choices") };
    const { answer: best, scores } = await ask("/solve", question, signal);
    const order = scores.map((_, place) => place).sort((one, other) => scores[other] - scores[one]);
    const rows = order.map((place) => ({
      content: [make("a", { href: linkTo(question.choices[place]), textContent: written(question.choices[place]) })],
      score: scores[place],
      shown: number(scores[place]),
      best: place === best,
    }));
    const { stem: asked, choices: given } = question;
    const told = make("p", { className: "answer" }, `${asked.head} is to ${asked.tail} as `, make("b", { textContent: given[best].head }), " is to ", make("b", { textContent: given[best].tail }), ".");
    result.replaceChildren(told, bars(rows));
    tell(section, null);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    result.replaceChildren();
    tell(section, problem, fieldOf);
  } finally {
    if (!signal.aborted) result.classList.remove("pending");
  }
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
