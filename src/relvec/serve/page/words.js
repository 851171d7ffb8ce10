// Pairs as people write them.

import { Problem } from "./api.js";

// A row has its words between tabs, else commas, else a colon.
export function parsePair(line) {
  const separator = ["\t", ",", ":"].find((each) => line.includes(each));
  const words = separator ? line.split(separator).map((word) => word.trim().replace(/^"(.*)"$/, "$1")) : [];
  return words.length >= 2 && words[0] && words[1] ? { head: words[0], tail: words[1] } : null;
}

// The pairs of a text, one a line; `field` is where a bad one is told.
export function parsePairs(text, field) {
  const lines = text.split("\n").filter((line) => line.trim());
  return lines.map((line, place) => {
    const pair = parsePair(line);
    if (!pair) throw new Problem({ message: `“${line.trim()}” is not a pair; write head : tail.`, field: `${field}.${place}` });
    return pair;
  });
}

export const written = ({ head, tail }) => `${head} : ${tail}`;

export const linkTo = ({ head, tail }) => `#pair?${new URLSearchParams({ head, tail })}`;

export const number = (score) => score.toFixed(2).replace("-", "−");

// Quotation marks as printers set them.
export const typeset = (sentence) => sentence.replace(/"([^"]*)"/g, "“$1”");
