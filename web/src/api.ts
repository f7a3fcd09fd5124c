// Requests to the server. A failure is a value, with the server's own words.

export interface Failure {
  status: number; // of HTTP; 0: no answer came
  code: string;
  message: string;
}
export type Answer<T> = { value: T; failure?: undefined } | { value?: undefined; failure: Failure };

// Of the browser's session; empty: there is none, or none is needed.
let pageToken = "";
export function usePageToken(token: string): void {
  pageToken = token;
}

// What the server's clock is ahead of ours, in milliseconds.
let clockAhead = 0;
export const now = (): number => Date.now() + clockAhead;

// Since when nothing is heard of the server.
export let silentSince: number | undefined;

const kPatienceMs = 30_000;

async function ask<T>(method: string, path: string, body?: object): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  if (method !== "GET" && pageToken) headers["X-CSRF-Token"] = pageToken;
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal: AbortSignal.timeout(kPatienceMs),
      cache: "no-store",
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    text = await response.text();
  } catch {
    silentSince ??= Date.now();
    return { failure: { status: 0, code: "no_answer", message: "The server does not answer." } };
  }
  silentSince = undefined;
  const date = Date.parse(response.headers.get("Date") ?? "");
  // It has whole seconds: a smaller difference is none.
  if (date) clockAhead = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
  const read = parse(text);
  return response.ok ? { value: read as T } : { failure: failureOf(response.status, read) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// {"error": {"code", "message"}} of most APIs, {"error": "…", "code"} of tasks.
function failureOf(status: number, read: unknown): Failure {
  const body = (read ?? {}) as { error?: { code?: string; message?: string } | string; code?: string };
  const error = typeof body.error === "string" ? { code: body.code, message: body.error } : body.error;
  return {
    status,
    code: error?.code ?? "unknown",
    message: error?.message ?? `The server answered HTTP ${status}.`,
  };
}

export const get = <T>(path: string, query: Record<string, string | undefined> = {}): Promise<Answer<T>> => {
  const set = Object.entries(query).filter((one): one is [string, string] => !!one[1]);
  const text = new URLSearchParams(set).toString();
  return ask<T>("GET", path + (text ? `?${text}` : ""));
};
export const post = <T>(path: string, body: object = {}): Promise<Answer<T>> => ask<T>("POST", path, body);
export const patch = <T>(path: string, body: object): Promise<Answer<T>> => ask<T>("PATCH", path, body);
export const remove = (path: string): Promise<Answer<unknown>> => ask("DELETE", path);
