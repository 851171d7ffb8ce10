// Making parts of the page. Text is always set as text, so a word is never read as HTML.

import { number } from "./words.js";

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children.filter((child) => child !== null));
  return element;
}

// CSS custom sizes are set from here, since the page allows no style attributes.
export function bar(share) {
  const found = make("span", { className: "bar" });
  found.style.width = `calc((100% - 3.4rem) * ${Math.max(0, share)})`; // the rest is for the number
  return found;
}

export function bars(rows) {
  const listed = rows.map(({ text, href, score, best }) =>
    make("li", { className: best ? "best" : "" }, make("a", { href, textContent: text }), make("span", { className: "number", textContent: number(score) }), bar(score)),
  );
  return make("ol", { className: "bars" }, ...listed);
}

// Tells of a problem below the form, and marks the field that it is about.
export function tell(section, problem, fieldOf = () => null) {
  const place = section.querySelector(".error");
  for (const marked of section.querySelectorAll("[aria-invalid]")) marked.removeAttribute("aria-invalid");
  place.textContent = problem ? problem.message : "";
  const field = problem && problem.field && fieldOf(problem.field);
  if (field) {
    place.textContent = problem.message.replace(problem.field, spoken(problem.field, field));
    place.id = `${section.id}-error`;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", place.id);
  }
}

// How a reader knows what the API calls `choices.1.tail`.
function spoken(name, field) {
  const [, row] = /\.(\d+)/.exec(name) ?? [];
  return field.tagName === "TEXTAREA" && row ? `Line ${Number(row) + 1}` : (field.ariaLabel ?? field.labels[0].textContent);
}

// Shows what `work` makes in the section's result; a problem is told in its place.
export function answering(section, fieldOf, work) {
  const result = section.querySelector(".result");
  return latest(async (signal) => {
    result.classList.add("pending");
    try {
      result.replaceChildren(...(await work(signal)));
      tell(section, null);
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      result.replaceChildren();
      tell(section, problem, fieldOf);
    } finally {
      if (!signal.aborted) result.classList.remove("pending");
    }
  });
}

// Runs the newest question only: an older one that is still under way is given up.
export function latest(work) {
  let controller = null;
  return async (...given) => {
    controller?.abort();
    controller = new AbortController();
    const { signal } = controller;
    try {
      await work(signal, ...given);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
}
