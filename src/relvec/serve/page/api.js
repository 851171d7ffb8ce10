// Asking the server, and what it refuses.

export class Problem extends Error {
  constructor({ message, field = null }, status = 0, retryAfter = 0) {
    super(message);
    this.field = field;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const settings = { model: null, maxPairs: 256 };

async function answered(path, options) {
  const key = sessionStorage.getItem("key");
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(path, { headers, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ message: "The server does not answer; is it still running?" });
  }
  if (response.ok) return response.json();
  if (response.status === 401) document.dispatchEvent(new Event("key-wanted"));
  const { error } = await response.json().catch(() => ({ error: { message: `The server failed (${response.status}).` } }));
  throw new Problem(error, response.status, Number(response.headers.get("retry-after")));
}

export const get = (path) => answered(path, {});

export function ask(path, question, signal) {
  const body = JSON.stringify(settings.model ? { model: settings.model, ...question } : question);
  return answered(path, { method: "POST", body, signal });
}

// Asks again while the server has no room; for work that may take its time.
export async function askPatiently(path, question) {
  for (;;) {
    try {
      return await ask(path, question);
    } catch (problem) {
      if (problem.status !== 429) throw problem;
      await new Promise((resolve) => setTimeout(resolve, 1000 * problem.retryAfter));
    }
  }
}
