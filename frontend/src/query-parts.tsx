/** Parts of the Ask pages of the app and the server: the SQL editor and the answer. */
import { useId, useMemo, useRef, useState } from "react";
import { Bars } from "./chart";
import { completions } from "./completions";
import { Panel } from "./ui";

interface Cell { value: string | number | boolean | null; low: number | null; high: number | null }
export interface Answer { columns: string[]; rows: Record<string, Cell>[]; cached?: boolean; notes?: string[] }

/** A text box for SQL. The words of the public schema that complete the current one are offered below it. */
export function SqlEditor(props: { sql: string; set: (sql: string) => void; words: string[] }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const [at, setAt] = useState(props.sql.length);
  const { typed, offered } = useMemo(() => completions(props.sql, at, props.words), [props.sql, at, props.words]);
  const take = (word: string) => {
    props.set(props.sql.slice(0, at - typed.length) + word + props.sql.slice(at));
    setAt(at - typed.length + word.length);
    area.current?.focus();
  };
  return (
    <>
      <label htmlFor={id} className="visually-hidden">SQL question</label>
      <textarea id={id} ref={area} className="sql" rows={4} spellCheck={false} value={props.sql}
        onChange={(event) => { props.set(event.target.value); setAt(event.target.selectionStart); }}
        onKeyDown={(event) => { if (event.key === "Tab" && offered[0] && !event.shiftKey) { event.preventDefault(); take(offered[0]); } }}
        onSelect={(event) => setAt(event.currentTarget.selectionStart)} />
      <div className="row offered" aria-label="Completions" role="group">{offered.map((word, n) => <button key={word} type="button" className="quiet" onClick={() => take(word)}>{word}{n === 0 ? " (Tab)" : ""}</button>)}</div>
    </>
  );
}

export function AnswerView(props: { answer: Answer }) {
  const { answer } = props;
  const noisy = answer.columns.find((name) => answer.rows.some((row) => row[name]?.low !== null && row[name]?.low !== undefined));
  const labels = answer.columns.filter((name) => name !== noisy && answer.rows.every((row) => row[name]?.low === null));
  const bars = noisy && answer.rows.length > 1 ? answer.rows.flatMap((row) => {
    const cell = row[noisy];
    if (typeof cell?.value !== "number" || typeof cell.low !== "number" || typeof cell.high !== "number") return [];
    return [{ label: labels.map((name) => String(row[name]?.value ?? "")).join(", ") || noisy, value: cell.value, low: cell.low, high: cell.high }];
  }) : [];
  return (
    <Panel title="Answer" aside={answer.cached ? <span className="muted">asked before: free</span> : undefined}>
      <div className="scroll" tabIndex={0} role="region" aria-label="Answer"><table className="list">
        <thead><tr>{answer.columns.map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
        <tbody>{answer.rows.map((row, n) => <tr key={n}>{answer.columns.map((name) => {
          const cell = row[name];
          return <td key={name}>{typeof cell?.value === "number" ? cell.value.toLocaleString("en") : String(cell?.value ?? "")}{cell?.low !== null && cell?.low !== undefined && cell.high !== null && <small className="muted"> {ends(cell.value, cell.low, cell.high)}</small>}</td>;
        })}</tr>)}</tbody>
      </table></div>
      {noisy && bars.length > 1 && <Bars bars={bars} title={noisy} label="Answer with its intervals; the table has the numbers" />}
      {(answer.notes ?? []).map((note) => <p key={note} className="muted">{note}</p>)}
    </Panel>
  );
}

/** An interval with as many digits as its width supports, rounded outwards. */
function ends(value: Cell["value"], low: number, high: number): string {
  const whole = typeof value === "number" && Number.isInteger(value);
  const digits = whole || high <= low ? 0 : Math.min(9, Math.max(0, 2 - Math.ceil(Math.log10(high - low))));
  const unit = 10 ** digits;
  const text = (end: number) => (end / unit).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${text(Math.floor(low * unit))} to ${text(Math.ceil(high * unit))}`;
}
