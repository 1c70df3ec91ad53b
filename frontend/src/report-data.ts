/** The report of the last run, as the service gives it. */
import { get } from "./api";
import { useLoaded, useStore } from "./store";
import type { Way } from "./ui";

export interface Attack {
  attack: string; discloses: string; risk: number | null; low: number | null; high: number | null; baseline: number | null; control: number | null;
  tried?: number; hits?: number; knows?: string[]; secret?: string; threat?: string; reason?: string; setting?: string; reference?: number | null; judged?: number | null;
}
export interface Measure { measure: string; value: number | null; low: number | null; high: number | null; columns: Record<string, number>; reason?: string; detail?: Record<string, unknown> }
export interface Requirement { key: string; reference: string; asks: string; state: string; evidence: string; question: string; answer: string }
export interface Framework { name: string; title: string; source: string; open: number; items: Requirement[] }
export interface Report {
  standing: string; answer: string[]; title: string; created: string; original_rows: number | null; manifest: { rows?: number };
  attacks: Attack[]; attacks_before: Attack[]; measures: Measure[]; verdicts: { model: string; state: string; worst: number | null; wanted: number | null; reason: string }[];
  limits: { limit: string; wanted: number; value: number | null; met: boolean | null; attack: string | null; words: string }[];
  ways: Way[];
  advice: { attack: string; finding: string; changes: string[] }[];
  riskiest: number[] | null; pictures: Record<string, string>; files: Record<string, string>; stale: "" | "recipe" | "data"; unmet: string[];
  fingerprint: string; signed: { prepared_by: string; approved_by: string; notes: string } | null;
  column_table: { column: string; role: string; done: string; released: boolean; unchanged: boolean; nothing_left: boolean; example_before: string | null; example_after: string | null; distinct_before: number | null; distinct_after: number | null }[];
  columns: { column: string; note: string }[]; about: Record<string, unknown>; left_out: string[]; compliance?: Framework[];
}

/** The last run: loaded again when a run ends or the recipe changes. */
export function useReport(): { report: Report | null; loading: boolean } {
  const { state, recipe } = useStore();
  const loaded = useLoaded(() => get("/api/report"), [state.run, recipe?.version]);
  return { report: (loaded.value?.report ?? null) as Report | null, loading: loaded.value === null && loaded.error === null };
}
