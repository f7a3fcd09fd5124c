// Who looks at the page, and what they may do. The key itself is never here: /login turned it into a cookie that
// scripts cannot read.
import { get, post, usePageToken, type Failure } from "./api";
import type { QueueCounts } from "./types";
import { redraw } from "./view";

interface Session {
  tenant: string;
  name: string;
  scopes: string[];
  csrf_token: string;
}

export type Standing =
  | { is: "unknown" }
  | { is: "free" } // the server asks nobody who they are
  | { is: "in"; session: Session }
  | { is: "out" }
  | { is: "shut"; failure: Failure }; // nobody can log in here

export let standing: Standing = { is: "unknown" };

export async function findOut(): Promise<void> {
  const session = await get<Session>("/login/session");
  if (session.value) {
    usePageToken(session.value.csrf_token);
    standing = { is: "in", session: session.value };
    return redraw();
  }
  const asked = await get<QueueCounts>("/api/v1/queue/metrics");
  if (asked.value) standing = { is: "free" };
  else if (asked.failure.status !== 401) standing = { is: "shut", failure: asked.failure };
  else standing = session.failure.status === 403 ? { is: "shut", failure: session.failure } : { is: "out" };
  redraw();
}

// A request was refused for want of a session.
export function lost(): void {
  if (standing.is !== "in") return;
  standing = { is: "out" };
  redraw();
}

export function may(scope: "jobs:write" | "admin"): boolean {
  return standing.is === "free" || (standing.is === "in" && standing.session.scopes.includes(scope));
}

export const loginAddress = (): string => `/login?next=${encodeURIComponent(location.pathname + location.search)}`;

export async function logOut(): Promise<void> {
  const answer = await post<{ end_session_url: string | null }>("/logout");
  location.assign(answer.value?.end_session_url ?? "/login?next=/ui/");
}
