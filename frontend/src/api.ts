/** Typed requests to the app's own service. The types are generated from its OpenAPI document. */
import { request } from "./http";
import type { components, paths } from "./schema";

export type State = components["schemas"]["AppState"];
export type RecipeState = components["schemas"]["RecipeState"];
export type JobStatus = components["schemas"]["JobStatus"];
export type FileList = components["schemas"]["FileList"];

type Answer<R> = R extends { responses: { 200: { content: { "application/json": infer T } } } } ? T : never;
type Body<R> = R extends { requestBody: { content: { "application/json": infer T } } } ? T : undefined;
type With<M extends string> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];

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

export function signIn(token: string): Promise<{ csrf: string }> {
  return request("POST", "/api/sign-in", { token });
}

/** The address of a page or download that the browser opens by itself, with a ticket that works once. */
export async function ticketed(path: string): Promise<string> {
  const { ticket } = await request<{ ticket: string }>("POST", "/api/ticket", {});
  return `${path}?ticket=${encodeURIComponent(ticket)}`;
}

export function saveMetadata(text: string, version: string): Promise<unknown> {
  return request("PUT", "/api/ask/metadata", { text, version });
}
