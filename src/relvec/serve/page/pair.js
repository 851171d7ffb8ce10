// A pair: how the two are related in words, the nearest pairs, and where it lies among relations.

import { ask } from "./api.js";
import { bars, latest, make, tell } from "./elements.js";
import { draw } from "./picture.js";
import { linkTo, number, typeset, written } from "./words.js";

const section = document.querySelector("#pair");
const form = section.querySelector("form");
const entry = section.querySelector(".entry");
const { head, tail, turn } = form.elements;

const fieldOf = (name) => (name.endsWith("head") ? head : name.endsWith("tail") ? tail : null);

export function show(parameters) {
  const given = { head: parameters.get("head") ?? "", tail: parameters.get("tail") ?? "" };
  if (given.head !== head.value.trim()) head.value = given.head;
  if (given.tail !== tail.value.trim()) tail.value = given.tail;
  if (given.head && given.tail) return answer(given);
  entry.hidden = true;
  tell(section, null);
  if (matchMedia("(hover: hover)").matches) head.focus();
}

const answer = latest(async (signal, pair) => {
  entry.classList.add("pending");
  entry.hidden = false; // what is hidden cannot be measured
  try {
    const explained = ask("/explain", { pairs: [pair] }, signal).then(({ explanations }) => senses(explanations[0], pair), lacking(".senses"));
    await Promise.all([
      explained.then(() => entry.classList.remove("pending")),
      ask("/map", { pair }, signal).then((map) => draw(place(".picture"), map, pair), lacking(".picture")),
      ask("/neighbours", { pairs: [pair], top: 10 }, signal).then(neighbours, lacking("aside")),
    ]);
    tell(section, null);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    entry.hidden = true;
    entry.classList.remove("pending");
    tell(section, problem, fieldOf);
  }
});

// A part of the entry that is shown from now on.
function place(name) {
  const part = section.querySelector(name);
  part.hidden = false;
  return part;
}

// Not every model has an index, or names for relations: then that part of the entry is left out.
const lacking = (name) => (problem) => {
  if (problem.field !== "model") throw problem;
  section.querySelector(name).hidden = true;
};

function senses({ relations, relatedness }, pair) {
  const isRelated = relatedness >= 0.5;
  const verdict = make("p", { className: "verdict", textContent: `No relation that relvec knows holds between ${pair.head} and ${pair.tail}.` });
  const likely = relations.filter(({ probability }, rank) => rank === 0 || probability >= 0.05).slice(0, 5);
  const listed = likely.map((relation) => make("li", {}, ...sense(relation)));
  const guesses = make("p", { className: "note", textContent: "The best guesses:" });
  place(".senses").replaceChildren(...(isRelated ? [] : [verdict, guesses]), make("ol", {}, ...listed));
}

function sense({ name, sentence, probability, examples, reversed }) {
  const chance = make("span", { className: "chance", title: `probability ${number(probability)}` }, make("span"));
  chance.firstChild.style.width = `${probability * 100}%`;
  const like = examples.slice(0, 3).flatMap((example, place) => [place ? ", " : "", make("a", { href: linkTo(example), textContent: written(example) })]);
  const percent = probability < 0.005 ? "under 1" : Math.round(probability * 100);
  const told = [chance, `${percent} % · ${name.replaceAll("-", " ")}`];
  if (reversed) told.push(" · ", make("span", { className: "turned", textContent: "the other way round" }));
  if (like.length) told.push(" · as ", ...like);
  return [make("p", { className: "sentence", textContent: sentenceCase(sentence) }), make("p", { className: "about" }, ...told)];
}

const sentenceCase = (text) => typeset(`${text.charAt(0).toUpperCase()}${text.slice(1)}.`);

function neighbours({ neighbours: found }) {
  const rows = found.map((pair) => ({ text: written(pair), href: linkTo(pair), score: pair.score }));
  place("aside").querySelector("ol").replaceChildren(...bars(rows).children);
}

export function start(go) {
  section.querySelector(".neighbours").classList.add("bars");
  let waiting = 0;
  const ready = () => {
    clearTimeout(waiting);
    const given = { head: head.value.trim(), tail: tail.value.trim() };
    if (given.head && given.tail) go("pair", new URLSearchParams(given));
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ready, 250);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (head.value.trim() && !tail.value.trim()) tail.focus();
    ready();
  });
  turn.addEventListener("click", () => {
    [head.value, tail.value] = [tail.value, head.value];
    ready();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === ":" && event.target === head) {
      event.preventDefault(); // head:tail is how people write a pair
      tail.focus();
    }
  });
}
