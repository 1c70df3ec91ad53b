/** Requests to the server. Paths and bodies are those of its OpenAPI document. */
import { request } from "../http";
import type { paths } from "./schema";

type Method = "post" | "put" | "patch" | "delete";
type Having<M extends string> = { [P in keyof paths]: M extends keyof paths[P] ? (paths[P][M] extends object ? P : never) : never }[keyof paths];
type Body<R> = R extends { requestBody: { content: { "application/json": infer T } } } ? T : undefined;
type Names = Record<string, string>;

function address(path: string, names: Names): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
}

/** Reads a document; the caller names its type. */
export function read<T>(path: Having<"get">, names: Names = {}, query = ""): Promise<T> {
  return request("GET", `${address(path, names)}${query}`);
}

/** Sends a change. The path and the body are checked against the OpenAPI document. */
export function send<M extends Method, P extends Having<M>>(method: M, path: P, body: P extends keyof paths ? (M extends keyof paths[P] ? Body<paths[P][M]> : never) : never, names: Names = {}): Promise<unknown> {
  return request(method.toUpperCase(), address(path, names), body);
}

export interface Me { name: string; roles: string[]; groups: string[]; scopes: string[]; csrf: string | null; reset: { at: string; by: string } | null }
export interface Dataset { name: string; state: "active" | "frozen" | "retired"; version: number; policy: string; owner?: string }
export interface User { name: string; roles: string[]; active: boolean; groups: string[]; created: string }
export interface Token { id: string; user: string; scopes: string[]; label: string; created: string; expires: string; last_used: string; revoked: string }
/** A privacy loss with exact fractions, such as {epsilon: "1/10", delta: "0"}. */
export type Loss = Record<string, string>;
export interface Budget { dataset: string; holder: string; period: string; cap: Loss | null; spent: Loss; left: Loss | null; since_beginning: Loss }
export interface BudgetRequest { id: string; by: string; dataset: string; holder: string; period: string; cap: Loss; why: string; state: string; at: string; approvals: string[] }
export interface Question { id: string; analyst: string; dataset: string; sql: string; options: Record<string, string>; state: string; error: { message: string; fix: string } | null; at: string; finished: string; charges: number }
export interface Entry { number: number; at: string; kind: string; dataset: string; analyst: string; measure: string; size: number; delta: number; about: string; hash: string }
export interface LossPoint { at: string; entry: number; spent: Loss; cap: Loss | null }

/** The value of a fraction: amount("1/4") is 0.25. */
export function amount(text: string | undefined): number {
  const [above, below] = (text ?? "0").split("/");
  return Number(above) / Number(below ?? 1);
}

/** The ε or ρ of a loss. */
export function size(loss: Loss | null | undefined): number {
  return amount(loss?.epsilon ?? loss?.rho);
}

export function lossText(loss: Loss | null | undefined): string {
  if (!loss) return "–";
  const delta = amount(loss.delta);
  return `${loss.rho === undefined ? "ε" : "ρ"} = ${Number(size(loss).toPrecision(4))}${delta ? `, δ = ${Number(delta.toPrecision(3))}` : ""}`;
}

/** A time of the server, in the reader's own way of writing. */
export function when(at: string): string {
  return at ? new Date(at).toLocaleString() : "–";
}
