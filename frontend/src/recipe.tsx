/** The recipe beside the form: its text, what is wrong with it, its history and branches. */
import { Prose } from "./ui";
import { useEffect, useId, useRef, useState } from "react";
import { post, saveText } from "./api";
import { t } from "./messages";
import { useStore } from "./store";

export function RecipePanel(props: { close: () => void }) {
  const { recipe, edit, fail } = useStore();
  const [draft, setDraft] = useState<string | null>(null);
  const [base, setBase] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const text = draft ?? recipe?.text ?? "";
  const save = async () => {
    if (draft === null) return;
    if (await edit(() => saveText(draft, base))) setDraft(null);
  };
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); void latest.current(); }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  if (!recipe) return null;
  const select = (line: number) => {
    const lines = text.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    area.current?.focus();
    area.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  };
  return (
    <aside className="recipe" aria-label={t("Recipe")}>
      <div className="panel-head">
        <h2>{t("Recipe")}</h2>
        <button type="button" className="quiet" onClick={props.close} aria-label="Close the recipe">✕</button>
      </div>
      <p className="muted small">{recipe.path}</p>
      {recipe.problems.length > 0 && (
        <ul className="problems">
          {recipe.problems.map((problem, n) => {
            const line = problem.line as number | null;
            return (
              <li key={n}>
                {line ? <button type="button" className="quiet" onClick={() => select(line)}>line {line}</button> : null}{" "}
                {String(problem.where)} <Prose of={String(problem.message)} />
              </li>
            );
          })}
        </ul>
      )}
      <label htmlFor={id} className="visually-hidden">Text of the recipe</label>
      <textarea id={id} ref={area} spellCheck={false} value={text} disabled={recipe.text === null}
        onChange={(event) => { if (draft === null) setBase(recipe.version); setDraft(event.target.value); }} />
      <div className="row">
        <button type="button" className="primary" disabled={draft === null} onClick={() => void save()}>{t("Save")}</button>
        <button type="button" disabled={draft === null} onClick={() => setDraft(null)}>Discard</button>
        <span className="muted small">Ctrl+S saves. Comments are kept.</span>
      </div>
      <Branches fail={fail} />
      <details>
        <summary>History ({recipe.recent.length})</summary>
        <ol className="history">
          {recipe.recent.map((version) => (
            <li key={version.number}>{version.change} <span className="muted small">{new Date(version.at * 1000).toLocaleString()}</span></li>
          ))}
        </ol>
      </details>
    </aside>
  );
}

function Branches(props: { fail: (error: unknown) => void }) {
  const { recipe, edit } = useStore();
  const [name, setName] = useState("");
  const [diff, setDiff] = useState<string[] | null>(null);
  const id = useId();
  if (!recipe) return null;
  const others = recipe.branches.filter((branch) => branch !== recipe.branch);
  return (
    <details>
      <summary>Branches ({recipe.branches.length})</summary>
      <form className="row" onSubmit={(event) => {
        event.preventDefault();
        void edit(() => post("/api/recipe/branch", { name })).then((done) => { if (done) setName(""); });
      }}>
        <label htmlFor={id} className="visually-hidden">Name of a new branch</label>
        <input id={id} value={name} onChange={(event) => setName(event.target.value)} placeholder="name of a new branch" />
        <button type="submit" disabled={!name.trim()}>Branch here</button>
      </form>
      <ul className="branches">
        <li><strong>{recipe.branch}</strong> (current)</li>
        {others.map((branch) => (
          <li key={branch}>{branch}{" "}
            <button type="button" onClick={() => void edit(() => post("/api/recipe/switch", { name: branch }))}>Switch to {branch}</button>{" "}
            <button type="button" onClick={() => {
              post("/api/recipe/compare", { one: recipe.branch, other: branch }).then((found) => setDiff(found.lines ?? []), props.fail);
            }}>Compare with {branch}</button>
          </li>
        ))}
      </ul>
      {diff && <pre className="diff" aria-label="Differences">{diff.length ? diff.map((line, n) => (
        <span key={n} className={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}>{line}{"\n"}</span>
      )) : "The branches are the same."}</pre>}
    </details>
  );
}
