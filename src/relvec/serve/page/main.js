// Which part of the page is shown. The address after # says it all; browsers do not send that part to the server.

import { get, settings } from "./api.js";
import { make } from "./elements.js";
import * as analogy from "./analogy.js";
import * as compare from "./compare.js";
import * as complete from "./complete.js";
import * as docs from "./docs.js";
import * as pair from "./pair.js";
import * as table from "./table.js";

const views = { pair, analogy, complete, compare, table, docs };

function show() {
  const [name, query] = location.hash.slice(1).split("?");
  if (name === "main") return;
  const chosen = name in views ? name : "pair";
  const parameters = new URLSearchParams(query ?? "");
  for (const view of Object.keys(views)) document.getElementById(view).hidden = view !== chosen;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${chosen}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (parameters.has("model") && settings.known?.includes(parameters.get("model"))) choose(parameters.get("model"));
  const title = document.querySelector(`#${chosen} h1`).textContent;
  document.title = `${title} · relvec`;
  views[chosen].show(parameters);
}

function go(name, parameters) {
  if (settings.model) parameters.set("model", settings.model);
  const address = `#${name}?${parameters}`;
  if (location.hash === address) return show();
  if (name === "pair" && location.hash.startsWith("#pair?")) {
    history.replaceState(null, "", address); // typing leaves no trail of half words
    show();
  } else {
    location.hash = address;
  }
}

function choose(model) {
  settings.model = model === settings.known[0] ? null : model;
  document.getElementById("model").value = model;
}

async function begin() {
  const { models, max_pairs: maxPairs } = await get("/models");
  settings.maxPairs = maxPairs;
  settings.known = models.map(({ name }) => name);
  const select = document.getElementById("model");
  select.replaceChildren(...settings.known.map((name) => make("option", { value: name, textContent: name })));
  select.parentElement.hidden = models.length < 2;
  const [{ name, index_pairs: pairs }] = models;
  document.getElementById("served").textContent = `Answered by ${name}${pairs ? ` and an index of ${pairs.toLocaleString("en")} pairs` : ""}.`;
}

document.addEventListener("key-wanted", () => {
  document.getElementById("key").hidden = false;
  document.querySelector("#key input").focus();
});
document.getElementById("key").addEventListener("submit", async (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", event.target.elements.key.value);
  event.target.hidden = true;
  await begin().then(show, () => {});
});
document.getElementById("model").addEventListener("change", ({ target }) => {
  choose(target.value);
  const [name, query] = location.hash.slice(1).split("?");
  const parameters = new URLSearchParams(query ?? "");
  parameters.delete("model");
  go(name || "pair", parameters);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName)) {
    event.preventDefault();
    document.querySelector("main section:not([hidden]) :is(input, textarea)").focus();
  }
});

for (const view of Object.values(views)) view.start(go);
addEventListener("hashchange", show);
begin().then(show, show);
