// The reference of the API, from the server's own OpenAPI document.

import { get } from "./api.js";
import { answering, make } from "./elements.js";

const EXAMPLES = {
  "/embed": { pairs: ["barista:coffee", "Paris:France"] },
  "/similarity": { left: ["barista:coffee"], right: ["baker:bread", "cup:coffee"] },
  "/solve": { stem: "word:language", choices: ["paint:portrait", "note:music", "tale:story"] },
  "/explain": { pairs: ["barista:coffee"] },
  "/map": { pair: "barista:coffee" },
  "/neighbours": { pairs: ["barista:coffee"], top: 3 },
  "/complete": { pair: "barista:coffee", head: "sommelier", top: 3 },
  "/v1/embeddings": { input: "barista:coffee" },
};

const code = (text) => make("code", { textContent: text });

function resolved(schema, whole) {
  const name = schema?.$ref?.split("/").pop();
  return name ? whole.components.schemas[name] : schema;
}

function kind(schema, whole) {
  if (schema.title === "Pair") return "pair";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" or ");
  if (schema.const) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map((each) => kind(each, whole)).join(" or ");
  if (schema.type === "array") return `list of ${kind(schema.items ?? {}, whole)}`;
  return schema.type ?? "any";
}

function fields(schema, whole, isAnswer = false) {
  const required = isAnswer ? [] : (schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const fallback = isAnswer || (field.default ?? null) === null ? "" : `By default ${JSON.stringify(field.default)}.`;
    const told = [field.description?.replaceAll("`", ""), required.includes(name) ? "Required." : fallback].filter(Boolean).join(" ");
    return make("tr", {}, make("td", {}, code(name)), make("td", { textContent: kind(field, whole) }), make("td", { textContent: told }));
  });
  return make("table", {}, make("tbody", {}, ...rows));
}

function article(path, method, endpoint, whole) {
  const parts = [make("h2", {}, code(`${method.toUpperCase()} ${path}`), ` ${endpoint.summary}`)];
  const body = resolved(endpoint.requestBody?.content["application/json"].schema, whole);
  if (body) parts.push(make("p", { textContent: "Takes" }), fields(body, whole));
  const answer = resolved(endpoint.responses["200"]?.content?.["application/json"]?.schema, whole);
  if (answer?.properties) parts.push(make("p", { textContent: "Gives" }), fields(answer, whole, true));
  const data = EXAMPLES[path] ? ` -H 'content-type: application/json' \\\n  -d '${JSON.stringify(EXAMPLES[path])}'` : "";
  parts.push(make("pre", {}, `curl ${location.origin}${path}${data}`));
  const refusals = Object.entries(endpoint.responses).filter(([status]) => status >= 400).map(([status, { description }]) => `${status} ${description}`);
  if (refusals.length) parts.push(make("p", { className: "note", textContent: `May refuse: ${refusals.join(", ")}.` }));
  return make("article", {}, ...parts);
}

export const show = answering(document.querySelector("#docs"), () => null, async () => {
  const whole = await get("/openapi.json");
  return Object.entries(whole.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, endpoint]) => article(path, method, endpoint, whole)));
});

export function start() {}
