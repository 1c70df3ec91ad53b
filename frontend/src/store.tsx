/** State that all pages share: the project, its recipe, jobs, and messages to the person. */
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { ReactNode } from "react";
import { get, post } from "./api";
import type { JobStatus, RecipeState, State } from "./api";
import { Refusal } from "./http";

export interface Store {
  state: State;
  recipe: RecipeState | null;
  refresh: () => Promise<void>;
  /**
   * Edits the recipe through the service, one edit after the other; refusals are shown. The action gets the version that
   * the edit before it led to, so that two quick edits of one person do not conflict. Returns whether it was done.
   */
  edit: (action: (version: string) => Promise<RecipeState>) => Promise<boolean>;
  /** Shows a refusal or another error. */
  fail: (error: unknown) => void;
  job: (kind: string) => JobStatus | undefined;
  setSection: (key: string, value: unknown) => Promise<boolean>;
  setColumn: (column: string, key: string, value: unknown) => Promise<boolean>;
}

const Context = createContext<Store | null>(null);

export function useStore(): Store {
  const store = useContext(Context);
  if (store === null) throw new Error("no store");
  return store;
}

export interface Shown { message: string; fix: string; lines: string[] }

export function shownError(error: unknown): Shown {
  if (error instanceof Refusal) {
    const { message, fix, problems } = error.problem;
    return { message, fix, lines: (problems ?? []).map((p) => (p.line ? `line ${p.line}: ${p.message}` : p.message)) };
  }
  return { message: "Something went wrong in the page.", fix: "Reload it; nothing is lost.", lines: [] };
}

export function StoreProvider(props: { children: ReactNode; error: (shown: Shown) => void; outside: (status: number) => ReactNode }) {
  const [state, setState] = useState<State | null>(null);
  const [refused, setRefused] = useState<number | null>(null);
  const { error } = props;
  const fail = useCallback((cause: unknown) => error(shownError(cause)), [error]);
  const version = useRef("");
  const last = useRef<Promise<boolean>>(Promise.resolve(true));
  const refresh = useCallback(async () => {
    try {
      const next = await get("/api/state");
      version.current = next.recipe?.version ?? "";
      setState(next);
      setRefused(null);
    } catch (cause) {
      setRefused(cause instanceof Refusal ? cause.status : 0);
    }
  }, []);
  const busy = state?.jobs.some((job) => job.state === "running" && job.kind !== "forms") ?? false;
  const timer = useRef<number>(0);
  useEffect(() => {
    void refresh();
  }, [refresh]);
  useEffect(() => {
    timer.current = window.setInterval(() => void refresh(), busy ? 600 : 3000);
    const focused = () => void refresh();
    window.addEventListener("focus", focused);
    return () => {
      window.clearInterval(timer.current);
      window.removeEventListener("focus", focused);
    };
  }, [refresh, busy]);
  const edit = useCallback((action: (version: string) => Promise<RecipeState>) => {
    const one = async () => {
      try {
        const recipe = await action(version.current);
        version.current = recipe.version;
        setState((old) => (old ? { ...old, recipe } : old));
        return true;
      } catch (cause) {
        fail(cause);
        await refresh();
        return false;
      }
    };
    last.current = last.current.then(one);
    return last.current;
  }, [fail, refresh]);
  const store = useMemo<Store | null>(() => {
    if (state === null) return null;
    const recipe = state.recipe ?? null;
    return {
      state, recipe, refresh, edit, fail,
      job: (kind) => state.jobs.find((job) => job.kind === kind),
      setSection: (key, value) => edit((version) => post("/api/recipe/section", { key, value, version })),
      setColumn: (column, key, value) => edit((version) => post("/api/recipe/column", { column, key, value, version })),
    };
  }, [state, refresh, edit, fail]);
  if (store === null || refused === 401 || refused === 0) return <>{refused === null ? null : props.outside(refused)}</>;
  return <Context.Provider value={store}>{props.children}</Context.Provider>;
}

/** The columns of the recipe with their settings. */
export type Settings = Record<string, unknown> & { role?: string; kind?: string; reason?: string; decided_by?: string };

export function columnsOf(recipe: RecipeState | null): Record<string, Settings> {
  const declared = (recipe?.document.columns ?? {}) as Record<string, unknown>;
  const result: Record<string, Settings> = {};
  for (const [name, value] of Object.entries(declared)) {
    result[name] = typeof value === "string" ? { role: value } : ((value ?? {}) as Settings);
  }
  return result;
}

/** Columns whose proposed role nobody has confirmed. */
export function unconfirmed(recipe: RecipeState | null): string[] {
  return Object.entries(columnsOf(recipe)).filter(([, column]) => column.role !== "undecided" && !column.decided_by).map(([name]) => name);
}

export function decisions(recipe: RecipeState | null): string {
  const open = Object.values(columnsOf(recipe)).filter((column) => column.role === "undecided").length;
  if (!recipe?.text) return "";
  if (open) return `${open} undecided`;
  return unconfirmed(recipe).length ? `${unconfirmed(recipe).length} not confirmed` : "decided";
}

/** A value loaded from the service, again whenever one of the keys changes. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): { value: T | null; error: Shown | null; again: () => void } {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<Shown | null>(null);
  const [count, setCount] = useState(0);
  useEffect(() => {
    let current = true;
    load().then(
      (found) => { if (current) { setValue(found); setError(null); } },
      (cause: unknown) => { if (current) { setError(shownError(cause)); setValue(null); } },
    );
    return () => { current = false; };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [...keys, count]);
  return { value, error, again: () => setCount((n) => n + 1) };
}
