// The picture of a pair among relations: a dot for each relation, names for the nearest, the pair in the accent colour.

import { written } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDEST = 560;
const STRETCH = 1.28; // wider than high, since names are
const MARGIN = 8;

function shape(tag, attributes, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

export function draw(figure, { relations }, pair) {
  const width = Math.min(WIDEST, figure.clientWidth); // drawn in the size in which it is seen, so that names can be read
  const [farLeft, farRight] = ends(relations.map(({ x }) => x * STRETCH));
  const [left, right] = [Math.min(farLeft, -farRight / 2), Math.max(farRight, -farLeft / 2)]; // names need room at both sides
  const [bottom, top] = ends(relations.map(({ y }) => y));
  const scale = Math.min((width - 2 * MARGIN) / (right - left), (0.75 * width) / (top - bottom));
  const middle = { x: (width - scale * (left + right)) / 2, y: MARGIN + scale * top };
  const room = { left: 0, top: 0, right: width, bottom: 2 * MARGIN + scale * (top - bottom) };
  const place = ({ x, y }) => ({ x: middle.x + scale * x * STRETCH, y: middle.y - scale * y });
  const near = relations.filter(({ rank }) => rank !== null).sort((one, other) => one.rank - other.rank);
  const svg = shape("svg", { viewBox: `0 0 ${room.right} ${room.bottom}`, role: "img" });
  svg.setAttribute("aria-label", `${written(pair)} lies nearest to the relations ${near.map(named).join("; ")}.`);
  for (const relation of relations.filter(({ rank }) => rank === null)) dot(svg, place(relation), 2, "sky", named(relation));
  for (const relation of near) dot(svg, place(relation), 3.5, "near", named(relation));
  svg.append(shape("circle", { cx: middle.x, cy: middle.y, r: 10, class: "ring" }));
  dot(svg, middle, 5.5, "here", written(pair));
  figure.querySelector("div").replaceChildren(svg); // text is measured once it is on the page
  const taken = [around(middle, 11), ...near.map((relation) => around(place(relation), 4))];
  const name = (relation) => label(svg, room, place(relation), named(relation), relation.rank === 0 ? "best" : "", taken, 7);
  near.slice(0, 1).forEach(name);
  label(svg, room, middle, written(pair), "here", taken, 13) || label(svg, room, middle, written(pair), "here", [], 13);
  near.slice(1).forEach(name);
  figure.querySelector("figcaption").textContent = `${written(pair)} among ${relations.length} relations, each as far from it as its pairs are on average; those alike lie on one side.`;
}

const named = ({ name, reversed }) => `${name.replaceAll("-", " ")}${reversed ? " (reversed)" : ""}`;

function dot(svg, { x, y }, radius, kind, title) {
  const circle = shape("circle", { cx: x, cy: y, r: radius, class: kind });
  circle.append(shape("title", {}, title));
  svg.append(circle);
}

const ends = (numbers) => [Math.min(0, ...numbers), Math.max(0, ...numbers)];

const around = ({ x, y }, radius) => ({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });

const overlap = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

// Writes a name beside, above or below its dot, where it covers no other; false if there is no room.
function label(svg, room, { x, y }, text, kind, taken, gap) {
  const written = shape("text", { class: kind }, text);
  svg.append(written);
  const { width, height } = written.getBBox();
  const places = [
    [x + gap, y + height / 3],
    [x - gap - width, y + height / 3],
    [x - width / 2, y - gap - 2],
    [x - width / 2, y + gap + height * 0.8],
    [x + gap * 0.6, y - gap],
    [x + gap * 0.6, y + gap + height * 0.7],
    [x - gap * 0.6 - width, y - gap],
    [x - gap * 0.6 - width, y + gap + height * 0.7],
  ];
  for (const [left, base] of places) {
    const box = { left: left - 1, right: left + width + 1, top: base - height * 0.8, bottom: base + height * 0.25 };
    if (box.left < room.left || box.right > room.right || box.top < room.top || box.bottom > room.bottom) continue;
    if (taken.some((other) => overlap(box, other))) continue;
    written.setAttribute("x", left);
    written.setAttribute("y", base);
    taken.push(box);
    return true;
  }
  written.remove();
  return false;
}
