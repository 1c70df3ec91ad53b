/** Compare: before and after side by side, in rows, distributions, pairs of columns and measures. */
import { useCallback, useState } from "react";
import { get, post } from "../api";
import { Chart } from "../chart";
import { useReport } from "../report-data";
import { useLoaded, useStore } from "../store";
import { Empty, ErrorNotice, Notice, Page, Panel, Role, count } from "../ui";

interface Pairs { rows: number; before: string[]; after: string[]; pairs: [number, (string | null)[], (string | null)[]][] }

export function ComparePage() {
  const { report, loading } = useReport();
  if (!report) return <Page title="Compare" lead="Before and after side by side.">{!loading && <Empty to="/protect" action="Run the recipe">There is no release to compare with yet.</Empty>}</Page>;
  const pictures = report.columns.map((column, n) => ({ ...column, svg: report.pictures[`column-${n + 1}`] })).filter((one) => one.svg !== undefined);
  return (
    <Page title="Compare" lead={`${count(report.manifest.rows)} rows were released of ${count(report.original_rows)}. Orange is before, blue is after.`}>
      {report.stale && <Notice kind="open">The {report.stale === "data" ? "data file" : "recipe"} has changed since this run.</Notice>}
      <Panel title="Columns">
        <div className="scroll" tabIndex={0} role="region" aria-label="What was done to each column">
          <table className="list">
            <thead><tr><th scope="col">Column</th><th scope="col">Role</th><th scope="col">What was done</th><th scope="col" className="number">Distinct before</th><th scope="col" className="number">after</th></tr></thead>
            <tbody>{report.column_table.map((line) => (
              <tr key={line.column}><th scope="row">{line.column}</th><td><Role role={line.role} /></td>
                <td>{line.nothing_left ? "nothing left" : line.done || (line.unchanged ? "unchanged" : "")}</td>
                <td className="number">{count(line.distinct_before)}</td><td className="number">{count(line.distinct_after)}</td></tr>
            ))}</tbody>
          </table>
        </div>
      </Panel>
      <Rows />
      <Pair />
      <div className="columns">
        {report.pictures["class-sizes"] !== undefined && <Panel title="Sizes of equivalence classes"><Chart svg={report.pictures["class-sizes"]} label="Sizes of equivalence classes before and after" /></Panel>}
        {pictures.map((one) => <Panel key={one.column} title={one.column}><Chart svg={one.svg!} label={`Distribution of ${one.column} before and after`} /><p className="muted small">{one.note}</p></Panel>)}
      </div>
      <Panel title="Measures">
        <table className="list">
          <thead><tr><th scope="col">Measure</th><th scope="col" className="number">Value</th><th scope="col">By column</th></tr></thead>
          <tbody>{report.measures.map((one) => (
            <tr key={one.measure}><th scope="row">{one.measure}</th><td className="number">{one.value === null ? "–" : Number(one.value.toPrecision(3))}</td>
              <td className="small">{one.reason || Object.entries(one.columns).map(([name, value]) => `${name} ${Number(value).toPrecision(2)}`).join(", ")}</td></tr>
          ))}</tbody>
        </table>
      </Panel>
    </Page>
  );
}

const PAGE = 25;

function Rows() {
  const { state } = useStore();
  const [offset, setOffset] = useState(0);
  const loaded = useLoaded(() => get("/api/compare/rows", `?offset=${offset}&count=${PAGE}`), [offset, state.run]);
  const pairs = loaded.value as unknown as Pairs | null;
  const last = pairs ? Math.max(0, Math.floor((pairs.rows - 1) / PAGE) * PAGE) : 0;
  return (
    <Panel title="Rows" aside={pairs && (
      <span className="row"><button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>Previous rows</button>
        <span className="small">{count(offset + 1)}–{count(Math.min(offset + PAGE, pairs.rows))} of {count(pairs.rows)}</span>
        <button type="button" disabled={offset >= last} onClick={() => setOffset(offset + PAGE)}>Next rows</button></span>)}>
      <p className="muted">Each released row with the original row it was made from. Only you can see this: the row map is secret.</p>
      <ErrorNotice error={loaded.error} />
      {pairs && (
        <div className="scroll" tabIndex={0} role="region" aria-label="Rows before and after">
          <table className="list pairs">
            <thead><tr><th scope="col">Original row</th>{pairs.after.map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
            <tbody>{pairs.pairs.map(([number, before, after], n) => (
              <tr key={n}><th scope="row">{number < 0 ? "none" : count(number + 1)}</th>
                {pairs.after.map((name, m) => {
                  const old = before[pairs.before.indexOf(name)] ?? null;
                  const now = after[m] ?? null;
                  return <td key={name}>{old === now ? (now ?? "") : <><del>{old ?? "empty"}</del> <ins>{now ?? "empty"}</ins></>}</td>;
                })}</tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function Pair() {
  const { state } = useStore();
  const { report } = useReport();
  const names = (report?.column_table ?? []).filter((line) => line.released).map((line) => line.column);
  const [one, setOne] = useState<string | null>(null);
  const [other, setOther] = useState<string | null>(null);
  const a = one ?? names[0] ?? "", b = other ?? names[1] ?? "";
  const load = useCallback(() => (a && b && a !== b ? post("/api/compare/pair", { one: a, other: b }) : Promise.resolve(null)), [a, b]);
  const found = useLoaded(load, [a, b, state.run]);
  const both = found.value as unknown as { before: { cells: [string, string, number][] }; after: { cells: [string, string, number][] } } | null;
  return (
    <Panel title="Two columns together">
      <div className="row">
        {[[a, setOne, "First column"], [b, setOther, "Second column"]].map(([value, set, label]) => (
          <select key={label as string} aria-label={label as string} value={value as string} onChange={(event) => (set as (v: string) => void)(event.target.value)}>
            {names.map((name) => <option key={name}>{name}</option>)}
          </select>
        ))}
      </div>
      <ErrorNotice error={found.error} />
      {both && <div className="columns"><Heat title="Before" cells={both.before.cells} a={a} b={b} /><Heat title="After" cells={both.after.cells} a={a} b={b} /></div>}
    </Panel>
  );
}

function Heat(props: { title: string; cells: [string, string, number][]; a: string; b: string }) {
  const rows = [...new Set(props.cells.map(([x]) => x))];
  const columns = [...new Set(props.cells.map(([, y]) => y))].sort();
  const most = Math.max(...props.cells.map(([, , n]) => n), 1e-9);
  const at = new Map(props.cells.map(([x, y, n]) => [`${x}\0${y}`, n]));
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={`${props.title}: ${props.a} and ${props.b}`}>
      <table className="heat"><caption>{props.title}: {props.a} (rows) and {props.b} (columns), % of rows</caption>
        <thead><tr><td />{columns.map((y) => <th scope="col" key={y}>{y}</th>)}</tr></thead>
        <tbody>{rows.map((x) => <tr key={x}><th scope="row">{x}</th>{columns.map((y) => {
          const n = at.get(`${x}\0${y}`) ?? 0;
          return <td key={y} className={`heat-${Math.min(4, Math.ceil((4 * n) / most))}`}>{n ? (100 * n).toFixed(1) : ""}</td>;
        })}</tr>)}</tbody></table>
    </div>
  );
}
