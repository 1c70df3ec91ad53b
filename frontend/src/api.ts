/** Typed requests to the app's own service. The types are generated from its OpenAPI document. */
import type { components, paths } from "./schema";

export type State = components["schemas"]["AppState"];
export type RecipeState = components["schemas"]["RecipeState"];
export type JobStatus = components["schemas"]["JobStatus"];
export type FileList = components["schemas"]["FileList"];

type Answer<R> = R extends { responses: { 200: { content: { "application/json": infer T } } } } ? T : never;
type Body<R> = R extends { requestBody: { content: { "application/json": infer T } } } ? T : undefined;
type With<M extends string> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];

export interface Problem { code: string; message: string; fix: string; problems?: { line: number | null; where: string; message: string }[] }

/** A refusal of the service, with what to do about it. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly problem: Problem) {
    super(problem.message);
  }
}

let csrf = "";
export function setCsrf(token: string): void { csrf = token; }

async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET") headers["x-csrf-token"] = csrf;
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refusal(0, { code: "", message: "The app does not answer.", fix: "Start `sfumato app` again." });
  }
  const document: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const found = (document as { error?: Problem } | null)?.error;
    throw new Refusal(response.status, found ?? { code: "", message: "The request was refused.", fix: "" });
  }
  return document as T;
}

export function get<P extends With<"get">>(path: P, query = ""): Promise<Answer<paths[P]["get"]>> {
  return request("GET", `${path}${query}`);
}

export function post<P extends With<"post">>(path: P, body: Body<paths[P]["post"]>): Promise<Answer<paths[P]["post"]>> {
  return request("POST", path, body ?? {});
}

export function saveText(text: string, version: string): Promise<RecipeState> {
  return request("PUT", "/api/recipe/text", { text, version });
}

export function cancelJob(number: number): Promise<unknown> {
  return request("POST", `/api/jobs/${number}/cancel`, {});
}

export function signIn(token: string): Promise<unknown> {
  return request("POST", "/api/sign-in", { token });
}

export function saveMetadata(text: string, version: string): Promise<unknown> {
  return request("PUT", "/api/ask/metadata", { text, version });
}
