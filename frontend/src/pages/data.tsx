/** Data: what was understood of the file, with corrections, column summaries and a grid of rows. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { get, post } from "../api";
import { SchemaForm } from "../form";
import type { Schema } from "../form-model";
import { Grid } from "../grid";
import { columnsOf, useLoaded, useStore } from "../store";
import { ErrorNotice, JobView, Page, Panel, Prose, Role, TextInput, count, follow, percent } from "../ui";

interface Summary {
  column: string; missing: number; distinct: number; type: string; problem?: string; label?: string;
  value_labels?: Record<string, string>; low?: number; high?: number; median?: number; histogram?: number[]; values?: [string, number][];
}

const KINDS = ["boolean", "integer", "number", "date", "datetime", "category"];
const BATCH = 8;

export function DataPage() {
  const { state, recipe, job } = useStore();
  const columns = columnsOf(recipe);
  const declared = JSON.stringify(Object.entries(columns).map(([name, c]) => [name, c.kind, c.missing_codes])) + JSON.stringify(recipe?.document.data ?? "");
  const table = useLoaded(() => get("/api/data/table"), [state.project, declared]);
  const names = useMemo(() => (table.value?.columns ?? []) as string[], [table.value]);
  const rows = (table.value?.rows ?? 0) as number;
  const summaries = useSummaries(names, declared);
  const load = useCallback((offset: number, number: number) =>
    get("/api/data/rows", `?offset=${offset}&count=${number}`).then((found) => found.rows as (string | null)[][]), []);
  return (
    <Page title="Data" lead={table.value ? `${count(rows)} rows and ${count(names.length)} columns were read. Check how each column was understood; a wrong kind or a code for “no answer” is corrected here.` : "Reading the file."}
      actions={<a className="button primary" href="/roles" onClick={follow}>Next: roles</a>}>
      <ErrorNotice error={table.error} />
      <JobView job={job("profile")} title="Looking at the columns" />
      <Reading key={`${state.project} ${JSON.stringify(recipe?.document.data ?? "")}`} />
      {table.value && (
        <>
          <Panel title="Rows">
            <Grid columns={names} rows={rows} load={load} version={declared} label="Rows of the table" head={(name) => columns[name]?.role ? <Role role={columns[name].role ?? ""} /> : null} />
          </Panel>
          <Panel title="Columns">
            <div className="scroll" tabIndex={0} role="region" aria-label="Columns">
            <table className="list">
              <thead><tr><th scope="col">Column</th><th scope="col">Kind</th><th scope="col">Values</th><th scope="col" className="number">Distinct</th><th scope="col" className="number">Empty</th><th scope="col">Codes for “no answer”</th></tr></thead>
              <tbody>{names.map((name) => <ColumnRow key={name} name={name} rows={rows} summary={summaries.get(name)} />)}</tbody>
            </table>
            </div>
          </Panel>
        </>
      )}
    </Page>
  );
}

interface ReadingState { format: string; schema: Schema | null; options: Record<string, unknown> }

/** How the file is read: the options of its format, such as the sheet or the delimiter. */
function Reading() {
  const { job, fail, refresh } = useStore();
  const loaded = useLoaded(() => get("/api/data/reading"), []);
  const reading = loaded.value as unknown as ReadingState | null;
  const [draft, setDraft] = useState<Record<string, unknown> | null>(null);
  if (!reading?.schema || Object.keys(reading.schema.properties ?? {}).length === 0) return null;
  const options = draft ?? reading.options;
  const used = Object.entries(reading.options).map(([name, value]) => `${name} ${String(value)}`).join(", ");
  return (
    <details className="panel" data-panel="Reading"><summary>How the file is read: {reading.format}{used ? `, ${used}` : ", found by looking"}</summary>
      <p className="muted">If the table looks wrong, choose the sheet, the delimiter or the header line. The roles are then proposed anew; undo brings the old recipe back.</p>
      <SchemaForm open schema={reading.schema} values={options} onChange={setDraft} />
      <div className="row"><button type="button" className="primary" disabled={draft === null || job("profile")?.state === "running"}
        onClick={() => { post("/api/data/reading", { options }).then(refresh, fail); }}>Read it this way</button></div>
    </details>
  );
}

function useSummaries(names: string[], version: string): Map<string, Summary> {
  const [found, setFound] = useState<Map<string, Summary>>(new Map());
  useEffect(() => {
    let current = true;
    void (async () => {
      for (let start = 0; start < names.length && current; start += BATCH) {
        const part = await post("/api/data/summary", { columns: names.slice(start, start + BATCH) }).catch(() => []);
        if (current) setFound((old) => new Map([...old, ...(part as unknown as Summary[]).map((s) => [s.column, s] as const)]));
      }
    })();
    return () => { current = false; };
  }, [names, version]);
  return found;
}

function ColumnRow(props: { name: string; rows: number; summary: Summary | undefined }) {
  const { recipe, setColumn } = useStore();
  const setting = columnsOf(recipe)[props.name];
  const { summary, name } = props;
  const codes = Array.isArray(setting?.missing_codes) ? (setting.missing_codes as unknown[]).join(", ") : "";
  const change = (text: string) => {
    const parts = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => (part !== "" && !Number.isNaN(Number(part)) ? Number(part) : part));
    void setColumn(name, "missing_codes", parts.length ? parts : null);
  };
  return (
    <tr>
      <th scope="row">{name}{summary?.label && <small className="muted block">{summary.label}</small>}</th>
      <td>
        <select aria-label={`Kind of ${name}`} disabled={!setting} value={setting?.kind ?? ""} onChange={(event) => void setColumn(name, "kind", event.target.value || null)}>
          <option value="">as stored ({summary?.type ?? "…"})</option>
          {KINDS.map((kind) => <option key={kind}>{kind}</option>)}
        </select>
        {summary?.problem && <small className="bad-text block"><Prose of={summary.problem} /></small>}
      </td>
      <td>{summary ? <Spark summary={summary} /> : "…"}</td>
      <td className="number">{count(summary?.distinct)}</td>
      <td className="number">{summary ? percent(summary.missing / Math.max(props.rows, 1)) : "…"}</td>
      <td><TextInput hidden label={`Codes of ${name} for no answer`} value={codes} onCommit={change} /></td>
    </tr>
  );
}

function Spark(props: { summary: Summary }) {
  const { summary } = props;
  if (summary.histogram?.length) {
    const most = Math.max(...summary.histogram);
    return (
      <span className="spark">
        <svg viewBox="0 0 96 24" role="img" aria-label={`Histogram from ${summary.low} to ${summary.high}, median ${summary.median}`}>
          {summary.histogram.map((n, i) => <rect key={i} x={i * 4} y={24 - (24 * n) / most} width="3.4" height={(24 * n) / most} />)}
        </svg>
        <small className="muted">{short(summary.low)} to {short(summary.high)}, median {short(summary.median)}</small>
      </span>
    );
  }
  const labels = summary.value_labels ?? {};
  const total = (summary.values ?? []).slice(0, 4).map(([value]) => (labels[value] ? `${value} ${labels[value]}` : value));
  return <small className="values">{total.join(" · ")}{summary.distinct > 4 ? ` and ${count(summary.distinct - 4)} more` : ""}</small>;
}

function short(value: number | undefined): string {
  return value === undefined || value === null ? "–" : Number(value.toPrecision(4)).toLocaleString("en");
}
