/** The frame of the app: navigation, undo and redo, the recipe panel, messages. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { ComponentType } from "react";
import { post } from "./api";
import { t } from "./messages";
import { RecipePanel } from "./recipe";
import { StoreProvider, decisions, useStore } from "./store";
import type { Shown, Store } from "./store";
import { ErrorNotice, follow, usePath } from "./ui";
import { STOPS, Tour } from "./tour";
import { StartPage } from "./pages/start";
import { DataPage } from "./pages/data";
import { RolesPage } from "./pages/roles";
import { HierarchiesPage } from "./pages/hierarchies";
import { ProtectPage } from "./pages/protect";
import { ComparePage } from "./pages/compare";
import { AttackPage } from "./pages/attack";
import { ReportPage } from "./pages/report";
import { AskPage } from "./pages/ask";

interface Entry { path: string; title: string; page: ComponentType; status: (store: Store) => string }

const PAGES: Entry[] = [
  { path: "/data", title: "Data", page: DataPage, status: ({ state, job }) => (job("profile")?.state === "running" ? "reading" : state.profiled ? "read" : "") },
  { path: "/roles", title: "Roles", page: RolesPage, status: ({ recipe }) => decisions(recipe) },
  { path: "/hierarchies", title: "Hierarchies", page: HierarchiesPage, status: () => "" },
  { path: "/protect", title: "Protect", page: ProtectPage, status: ({ state, job }) => (job("protect")?.state === "running" ? "running" : state.run ? "run" : "") },
  { path: "/compare", title: "Compare", page: ComparePage, status: () => "" },
  { path: "/attack", title: "Attack", page: AttackPage, status: () => "" },
  { path: "/report", title: "Report", page: ReportPage, status: () => "" },
  { path: "/ask", title: "Ask", page: AskPage, status: () => "" },
];

export function App() {
  const [error, setError] = useState<Shown | null>(null);
  const show = useCallback((shown: Shown) => setError(shown), []);
  return (
    <StoreProvider error={show} outside={(status) => <Outside status={status} />}>
      <Frame />
      {error && (
        <div className="toast" role="alert">
          <ErrorNotice error={error} />
          <button type="button" onClick={() => setError(null)}>Close</button>
        </div>
      )}
    </StoreProvider>
  );
}

function Outside(props: { status: number }) {
  const gone = props.status === 0;
  return (
    <main className="outside">
      <h1>sfumato</h1>
      <p>{gone ? "The app has ended. Start it again on the command line: " : "Open the link that the command line printed. Each link works once; the newest one is printed last: "}
        <code>sfumato app</code></p>
    </main>
  );
}

function Frame() {
  const store = useStore();
  const path = usePath();
  const [recipeOpen, setRecipeOpen] = useState(false);
  // The stop of the tour is in the address, so that a reload keeps it.
  const stop = /^#tour=(\d+)$/.exec(window.location.hash)?.[1];
  const setStop = (next: number | null) => {
    window.history.replaceState(null, "", `${window.location.pathname}${next === null ? "" : `#tour=${next}`}`);
    window.dispatchEvent(new PopStateEvent("popstate"));
  };
  const main = useRef<HTMLElement>(null);
  const { state, recipe, edit } = store;
  const shown = state.project === null || path === "/start" ? null : (PAGES.find((entry) => entry.path === path) ?? PAGES[0]!);
  const title = shown?.title ?? "Start";
  useEffect(() => {
    document.title = `${t(title)} · ${state.project ?? "sfumato"}`;
    main.current?.scrollTo(0, 0);
  }, [title, state.project]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const inText = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (!(event.ctrlKey || event.metaKey) || inText) return;
      const key = event.key.toLowerCase();
      if (key === "z" && !event.shiftKey && recipe?.undo) { event.preventDefault(); void edit(() => post("/api/recipe/undo", undefined)); }
      if ((key === "y" || (key === "z" && event.shiftKey)) && recipe?.redo) { event.preventDefault(); void edit(() => post("/api/recipe/redo", undefined)); }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [recipe, edit]);
  const Shown = shown?.page ?? StartPage;
  return (
    <div className={`frame ${recipeOpen && shown ? "with-recipe" : ""}`}>
      <a className="skip" href="#main">Skip to the content</a>
      <header className="top">
        <a className="brand" href="/start" onClick={follow}>sfumato</a>
        {state.project && <span className="project">{state.project}</span>}
        {recipe?.text && shown && (
          <div className="tools">
            <button type="button" disabled={!recipe.undo} title={recipe.undo ? `Undo: ${recipe.undo} (Ctrl+Z)` : ""}
              onClick={() => void edit(() => post("/api/recipe/undo", undefined))}>↶ {t("Undo")}</button>
            <button type="button" disabled={!recipe.redo} title={recipe.redo ? `Redo: ${recipe.redo} (Ctrl+Y)` : ""}
              onClick={() => void edit(() => post("/api/recipe/redo", undefined))}>↷ {t("Redo")}</button>
            <button type="button" aria-pressed={recipeOpen} onClick={() => setRecipeOpen(!recipeOpen)}>
              {t("Recipe")}{recipe.problems.length > 0 ? ` (${recipe.problems.length} problems)` : ""}
            </button>
          </div>
        )}
      </header>
      {shown && (
        <nav aria-label="Pages">
          <ol>
            {PAGES.map((entry) => {
              const status = entry.status(store);
              return (
                <li key={entry.path}>
                  <a href={entry.path} onClick={follow} aria-current={entry === shown ? "page" : undefined}>
                    {t(entry.title)}{status && <small>{status}</small>}
                  </a>
                </li>
              );
            })}
          </ol>
        </nav>
      )}
      <main id="main" ref={main} tabIndex={-1}><Shown /></main>
      {shown && stop !== undefined && Number(stop) < STOPS.length && <Tour stop={Number(stop)} set={setStop} />}
      {recipeOpen && shown && <RecipePanel close={() => setRecipeOpen(false)} />}
    </div>
  );
}
