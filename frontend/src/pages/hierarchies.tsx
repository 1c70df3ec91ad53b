/** Hierarchies: the rule of each quasi-identifier with a live preview, and a tree editor for groups of values. */
import { useEffect, useId, useState } from "react";
import { get, post } from "../api";
import { SchemaForm, useForms } from "../form";
import { TreeEditor } from "../tree";
import { fromRows, fromTaxonomy, toTaxonomy } from "../tree-model";
import type { Tree } from "../tree-model";
import { columnsOf, shownError, useLoaded, useStore } from "../store";
import type { Shown } from "../store";
import { Empty, ErrorNotice, Notice, Page, Panel, Prose, StateMark, count } from "../ui";

interface State { column: string; kind: string | null; state: string; missing: number; levels: number; rule?: string; reason?: string }
export interface Preview { levels: { level: number; groups: number; largest: number }[]; rows: string[][]; counts: number[]; values: number; gaps: string[]; missing: number }

const TREE = "taxonomy";

export function HierarchiesPage() {
  const { recipe } = useStore();
  const [chosen, setChosen] = useState<string | null>(null);
  const states = useLoaded(() => get("/api/data/hierarchies"), [recipe?.version]);
  const list = (states.value ?? []) as unknown as State[];
  const column = chosen ?? list[0]?.column ?? null;
  return (
    <Page title="Hierarchies" lead="How the values of each quasi-identifier become coarser: 23, then 20–24, then 20–29. A column without a hierarchy can only be removed entirely.">
      <ErrorNotice error={states.error} />
      {states.value && list.length === 0 && <Empty to="/roles" action="Decide roles">No column is a quasi-identifier, so there is nothing to generalize.</Empty>}
      {list.length > 0 && (
        <div className="columns narrow-left">
          <Panel title="Quasi-identifiers">
            <ul className="choices">
              {list.map((one) => (
                <li key={one.column}>
                  <button type="button" aria-pressed={one.column === column} onClick={() => setChosen(one.column)}>
                    <strong>{one.column}</strong> <small className="block">{one.rule ?? "no rule"}, {one.levels} {one.levels === 1 ? "level" : "levels"}</small>
                    <StateMark state={one.state === "none" ? "missing" : one.state} />{one.missing > 0 && <small> {count(one.missing)} values</small>}
                  </button>
                </li>
              ))}
            </ul>
          </Panel>
          {column && <Editor key={column} column={column} />}
        </div>
      )}
    </Page>
  );
}

function Editor(props: { column: string }) {
  const { recipe, setColumn } = useStore();
  const forms = useForms();
  const id = useId();
  const current = columnsOf(recipe)[props.column]?.hierarchy as Record<string, unknown> | undefined;
  const [draft, setDraft] = useState<Record<string, unknown> | null>(null);
  const [preview, setPreview] = useState<Preview | null>(null);
  const [error, setError] = useState<Shown | null>(null);
  const rule = draft ?? current ?? null;
  const key = JSON.stringify(rule);
  useEffect(() => {
    let live = true;
    const timer = window.setTimeout(() => {
      post("/api/data/hierarchy", { column: props.column, hierarchy: rule, values: true }).then(
        (found) => { if (live) { setPreview(found as unknown as Preview); setError(null); } },
        (cause: unknown) => { if (live) setError(shownError(cause)); },
      );
    }, 150);
    return () => { live = false; window.clearTimeout(timer); };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, props.column]);
  const parts = forms?.parts.hierarchies ?? [];
  const name = rule ? Object.keys(rule)[0]! : "";
  const part = parts.find((one) => one.name === name);
  const raw = rule ? rule[name] : null;
  const values = raw !== null && typeof raw === "object" && !Array.isArray(raw) && (!part?.main || part.main in raw || name !== TREE) ? (raw as Record<string, unknown>) : part?.main && raw !== null ? { [part.main]: raw } : {};
  const choose = (next: string) => {
    if (!next) setDraft({});
    else if (next === TREE && preview) setDraft({ [TREE]: { tree: toTaxonomy(fromRows(preview.rows)) } });
    else setDraft({ [next]: {} });
  };
  const tree: Tree | null = name === TREE ? fromTaxonomy(values.tree) : null;
  const removed = draft !== null && Object.keys(draft).length === 0;
  const save = () => { void setColumn(props.column, "hierarchy", removed ? null : draft).then((done) => { if (done) setDraft(null); }); };
  const outside = tree && preview ? [...preview.gaps] : [];
  return (
    <div>
      <Panel title={props.column} aside={
        <span className="row">
          <button type="button" className="primary" disabled={draft === null || (error !== null && !removed)} onClick={save}>Save</button>
          <button type="button" disabled={draft === null} onClick={() => setDraft(null)}>Discard</button>
          {preview && <button type="button" onClick={() => download(`${props.column}.hierarchy.csv`, preview.rows)}>Export as CSV</button>}
        </span>}>
        <div className="row">
          <label htmlFor={id}>Rule</label>
          <select id={id} value={removed ? "" : name} onChange={(event) => choose(event.target.value)}>
            <option value="">none (only *)</option>
            {parts.map((one) => <option key={one.name} value={one.name}>{one.name === TREE ? "taxonomy (tree of groups)" : one.name}</option>)}
          </select>
          {name !== TREE && preview && preview.values <= 400 && <button type="button" onClick={() => choose(TREE)}>Edit as a tree</button>}
        </div>
        {part && <p className="muted"><Prose of={part.summary} /></p>}
        {part && name !== TREE && forms && (
          <SchemaForm open schema={forms.definitions[part.definition]!} values={values} onChange={(next) => setDraft({ [name]: next })} />
        )}
        {name === "file" && <p className="muted small">The path of a CSV file, relative to the recipe: each line is a value and its labels, from fine to coarse. Export writes one to start from.</p>}
        {tree && <TreeEditor tree={tree} outside={outside} onChange={(next) => setDraft({ [TREE]: { tree: toTaxonomy(next) } })} />}
        <ErrorNotice error={error} />
      </Panel>
      {preview && !error && <Levels preview={preview} />}
    </div>
  );
}

function Levels(props: { preview: Preview }) {
  const { preview } = props;
  return (
    <Panel title="Preview">
      {preview.missing > 0 && <Notice kind="bad">{count(preview.missing)} {preview.missing === 1 ? "value has" : "values have"} no place: {preview.gaps.slice(0, 8).join(", ")}{preview.gaps.length > 8 ? " …" : ""}</Notice>}
      <div className="scroll tall" tabIndex={0} role="region" aria-label="Values and their labels at each level">
        <table className="list">
          <thead><tr><th scope="col" className="number">Rows</th>{preview.levels.map((level) => <th scope="col" key={level.level}>{level.level === 0 ? "value" : `level ${level.level}`}<small className="muted block">{count(level.groups)} groups</small></th>)}</tr></thead>
          <tbody>{preview.rows.map((row, n) => (
            <tr key={n}><td className="number">{count(preview.counts[n])}</td>{row.map((label, m) => <td key={m} className={n > 0 && preview.rows[n - 1]?.[m] === label && m > 0 ? "same" : ""}>{label}</td>)}</tr>
          ))}</tbody>
        </table>
      </div>
    </Panel>
  );
}

function download(name: string, rows: string[][]): void {
  const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const blob = new Blob([rows.map((row) => row.map(quote).join(",")).join("\n") + "\n"], { type: "text/csv" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
