/** Requests with JSON bodies to the own origin: the CSRF token, or an API token, and refusals as errors. */
export interface Problem { code: string; message: string; fix: string; problems?: { line: number | null; where: string; message: string }[] }

/** A refusal of the service, with what to do about it. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly problem: Problem) {
    super(problem.message);
  }
}

let csrf = "";
export function setCsrf(token: string): void { csrf = token; }
export function hasCsrf(): boolean { return csrf !== ""; }

/** An API token is kept in memory only, so that a reload signs out. */
let bearer = "";
export function setBearer(token: string): void { bearer = token; }

let restart = "Start `sfumato app` again.";
export function setRestart(fix: string): void { restart = fix; }

export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (csrf) headers["x-csrf-token"] = csrf;
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refusal(0, { code: "", message: "The service does not answer.", fix: restart });
  }
  const document: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const found = (document as { error?: Problem } | null)?.error;
    throw new Refusal(response.status, found ?? { code: "", message: "The request was refused.", fix: "" });
  }
  return document as T;
}
