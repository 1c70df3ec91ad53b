/** Ask: SQL questions with differential privacy, their cost and error beforehand, answers with error bars. */
import { useId, useState } from "react";
import { get, post, saveMetadata } from "../api";
import { AnswerView, SqlEditor } from "../query-parts";
import type { Answer } from "../query-parts";
import { shownError, useLoaded, useStore } from "../store";
import type { Shown } from "../store";
import { ErrorNotice, Notice, OpenPage, Page, Panel, Prose, StateMark } from "../ui";

interface Loss { text: string; epsilon?: string | number }
interface State {
  text: string | null; version: string; path: string; dataset: string; policy: string; columns: string[]; tables: Record<string, string[][]>;
  budget: { cap: Loss | null; spent: Loss | null; left: Loss | null } | null; history: { at?: string; analyst?: string; text: string; number?: number; verdict?: string }[];
  sensitive: string[]; promise: string; problem: string;
}

export function AskPage() {
  const { state, recipe } = useStore();
  const [round, setRound] = useState(0);
  const loaded = useLoaded(() => get("/api/ask"), [state.project, recipe?.path, round]);
  const ask = loaded.value as unknown as State | null;
  return (
    <Page title="Ask" lead="Answers to SQL questions: with noise that hides every single person and a budget (differential privacy), or exact ones that an auditor refuses before they determine somebody's value.">
      <ErrorNotice error={loaded.error} />
      {ask && (ask.text === null ? <Setup columns={ask.columns} sensitive={ask.sensitive} done={() => setRound(round + 1)} /> : <Desktop ask={ask} changed={() => setRound(round + 1)} />)}
    </Page>
  );
}

function Setup(props: { columns: string[]; sensitive: string[]; done: () => void }) {
  const { state, fail } = useStore();
  const [audit, setAudit] = useState(false);
  const [unit, setUnit] = useState("");
  const [epsilon, setEpsilon] = useState("");
  const [k, setK] = useState("");
  const [sensitive, setSensitive] = useState(props.sensitive);
  const ids = [useId(), useId(), useId()];
  const request = audit ? { unit: "row", k: Number(k), epsilon: null, sensitive, by: state.user } : { unit, epsilon, k: null, sensitive: [], by: state.user };
  return (
    <Panel title="Set the table up for questions">
      <form onSubmit={(event) => { event.preventDefault(); post("/api/ask/setup", request).then(props.done, fail); }}>
        <fieldset className="checks lines"><legend>How are questions answered?</legend>
          <label><input type="radio" name="policy" checked={!audit} onChange={() => setAudit(false)} /> With noise and a budget (differential privacy): holds against any other knowledge and any number of colluding analysts</label>
          <label><input type="radio" name="policy" checked={audit} onChange={() => setAudit(true)} /> Exactly or not at all (auditor): refuses what would leave somebody too few possible values; every row is another person</label>
        </fieldset>
        {audit ? <>
          <fieldset className="checks"><legend>Sensitive columns</legend>
            {props.columns.map((name) => <label key={name}><input type="checkbox" checked={sensitive.includes(name)} onChange={(event) => setSensitive(event.target.checked ? [...sensitive, name] : sensitive.filter((one) => one !== name))} /> {name}</label>)}
          </fieldset>
          <div className="field"><label htmlFor={ids[2]}>k: possible values that everyone keeps</label>
            <input id={ids[2]} type="number" min="2" value={k} onChange={(event) => setK(event.target.value)} />
            <small className="muted">There is no default. 2 means that nobody's value becomes certain.</small></div>
        </> : <>
        <div className="field"><label htmlFor={ids[0]}>Who is protected: what identifies a person?</label>
          <select id={ids[0]} value={unit} onChange={(event) => setUnit(event.target.value)}>
            <option value="">choose</option><option value="row">row: every row is another person</option>
            {props.columns.map((name) => <option key={name}>{name}</option>)}
          </select></div>
        <div className="field"><label htmlFor={ids[1]}>Budget: total ε of all answers, forever</label>
          <input id={ids[1]} inputMode="decimal" value={epsilon} onChange={(event) => setEpsilon(event.target.value)} />
          <small className="muted">There is no default. 1 is a common choice for a strong promise; each answer spends a part of it.</small></div>
        </>}
        <button type="submit" className="primary" disabled={audit ? !(Number(k) >= 2) || sensitive.length === 0 : !unit || !epsilon}>Set up</button>
      </form>
    </Panel>
  );
}

function number(loss: Loss | null | undefined): number {
  const value = Number(loss?.epsilon ?? NaN);
  return Number.isFinite(value) ? value : Number(/[\d.]+/.exec(loss?.text ?? "")?.[0] ?? 0);
}

function Desktop(props: { ask: State; changed: () => void }) {
  const { ask } = props;
  const { state } = useStore();
  const table = Object.keys(ask.tables)[0] ?? "";
  const [sql, setSql] = useState(`SELECT COUNT(*) AS n FROM ${table}`);
  const [epsilon, setEpsilon] = useState("0.1");
  const [analyst, setAnalyst] = useState(state.user);
  const [plan, setPlan] = useState<string | null>(null);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<Shown | null>(null);
  const [busy, setBusy] = useState(false);
  const question = { sql, epsilon: ask.policy === "differential-privacy" ? epsilon || null : null, delta: null, analyst };
  const run = (action: () => Promise<void>) => { setBusy(true); setError(null); action().catch((cause: unknown) => setError(shownError(cause))).finally(() => setBusy(false)); };
  const ids = [useId(), useId()];
  return (
    <>
      {ask.problem && <Notice kind="bad"><Prose of={ask.problem} /></Notice>}
      {ask.promise && <Notice kind="open"><strong>Policy {ask.policy}:</strong> {ask.promise}</Notice>}
      {ask.budget && <Budget budget={ask.budget} next={Number(epsilon) || 0} />}
      <div className="columns wide-left">
        <div>
          <Panel title="Question">
            <SqlEditor sql={sql} set={(text) => { setSql(text); setPlan(null); }} words={[table, ...(ask.tables[table] ?? []).map((row) => row[0] ?? "")]} />
            <div className="row">
              {ask.policy === "differential-privacy" && <><label htmlFor={ids[0]}>ε of this answer</label><input id={ids[0]} inputMode="decimal" value={epsilon} onChange={(event) => setEpsilon(event.target.value)} /></>}
              <label htmlFor={ids[1]}>Analyst</label><input id={ids[1]} value={analyst} onChange={(event) => setAnalyst(event.target.value)} />
              <button type="button" disabled={busy} onClick={() => run(async () => setPlan(String((await post("/api/ask/explain", question)).text)))}>Explain (free)</button>
              <button type="button" className="primary" disabled={busy} onClick={() => run(async () => { setAnswer(null); try { setAnswer((await post("/api/ask/answer", question)) as unknown as Answer); } finally { props.changed(); } })}>Ask</button>
            </div>
            <ErrorNotice error={error} />
            {plan && <pre className="plan" aria-label="Cost and expected error">{plan}</pre>}
          </Panel>
          {answer && <AnswerView answer={answer} />}
        </div>
        <div>
          <Panel title="What can be asked">
            {Object.entries(ask.tables).map(([name, rows]) => (
              <table className="list" key={name}><caption>{name}</caption><thead><tr><th scope="col">Column</th><th scope="col">Kind</th><th scope="col">Declared values</th></tr></thead>
                <tbody>{rows.map((row) => <tr key={row[0]}><th scope="row">{row[0]}</th><td>{row[1]}</td><td className="small">{row[2]}</td></tr>)}</tbody></table>
            ))}
            <p className="muted small">Sums and groups need declared values. Add a <code>domain</code> to the column in the metadata below.</p>
          </Panel>
          {ask.policy === "audit" && <AuditorView ask={ask} />}
          {ask.policy !== "audit" && <Panel title="History">
            {ask.history.length === 0 ? <p className="muted">Nothing was asked yet.</p> : <ol className="history">{ask.history.map((one, n) => <li key={n}><code>{one.text || "question"}</code> <small className="muted">{one.analyst}, {one.at}</small></li>)}</ol>}
          </Panel>}
        </div>
      </div>
      <MetadataEditor ask={ask} changed={props.changed} />
    </>
  );
}

interface Told { columns: { column: string; sentences: string[]; people_by_values_kept: Record<string, number>; exposed: number[]; proof: { query: number; question: string }[] }[]; left_out: string[] }

/** The auditor's view, for the owner: every decision, and what the answers that were given tell together. */
function AuditorView(props: { ask: State }) {
  const { fail } = useStore();
  const [told, setTold] = useState<Told | null>(null);
  const given = props.ask.history.filter((one) => one.verdict !== "refused").length;
  return (
    <Panel title="Auditor">
      <p>{props.ask.history.length} decisions: {given} answered, {props.ask.history.length - given} refused. They bind everybody who asks; all analysts count as one.</p>
      <ol className="history" reversed>{props.ask.history.map((one) => <li key={one.number} value={one.number}><code>{one.text}</code> <StateMark state={one.verdict === "counterfeits" ? "answered with false values" : (one.verdict ?? "")} /></li>)}</ol>
      <div className="row">
        <button type="button" disabled={given === 0} onClick={() => { get("/api/ask/told").then((found) => setTold(found as unknown as Told), fail); }}>What do the answers tell together?</button>
        {given > 0 && <OpenPage path="/api/ask/told/page">With pictures</OpenPage>}
      </div>
      {told?.columns.map((column) => (
        <div key={column.column} role="group" aria-label={`Told about ${column.column}`}>
          <h3>{column.column}</h3>
          {column.sentences.map((text) => <p key={text}>{text}</p>)}
          <table className="list"><caption className="visually-hidden">People by the number of values they keep</caption><thead><tr><th scope="col">Possible values left</th><th scope="col" className="number">People</th></tr></thead>
            <tbody>{Object.entries(column.people_by_values_kept).map(([values, people]) => <tr key={values}><th scope="row">{values === "0" ? "any number" : values}</th><td className="number">{people.toLocaleString("en")}</td></tr>)}</tbody></table>
          {column.proof.length > 0 && <><p className="bad-text">These answers together show it:</p><ol>{column.proof.map((one) => <li key={one.query}><code>{one.question}</code></li>)}</ol></>}
        </div>
      ))}
      {told && told.left_out.length > 0 && <p className="muted small">Not judged: {told.left_out.join("; ")}</p>}
    </Panel>
  );
}

function Budget(props: { budget: NonNullable<State["budget"]>; next: number }) {
  const cap = number(props.budget.cap), spent = number(props.budget.spent), next = Math.min(props.next, Math.max(0, cap - spent));
  return (
    <Panel title="Budget">
      <div className="budget" role="img" aria-label={`spent ${spent} of ${cap}; the next answer takes ${props.next}`}>
        <svg viewBox="0 0 100 6" preserveAspectRatio="none"><rect className="cap" width="100" height="6" /><rect className="spent" width={(100 * spent) / (cap || 1)} height="6" /><rect className="next" x={(100 * spent) / (cap || 1)} width={(100 * next) / (cap || 1)} height="6" /></svg>
      </div>
      <p>Spent {props.budget.spent?.text ?? "nothing"} of {props.budget.cap?.text ?? "no cap"}; left {props.budget.left?.text ?? "–"}. The blue part is what this answer would take. Spent budget never comes back.</p>
    </Panel>
  );
}

function MetadataEditor(props: { ask: State; changed: () => void }) {
  const { fail } = useStore();
  const [draft, setDraft] = useState<string | null>(null);
  const id = useId();
  return (
    <Panel title="Metadata">
      <p className="muted small">{props.ask.path}</p>
      <label htmlFor={id} className="visually-hidden">Metadata of the table</label>
      <textarea id={id} className="sql" rows={12} spellCheck={false} value={draft ?? props.ask.text ?? ""} onChange={(event) => setDraft(event.target.value)} />
      <div className="row"><button type="button" disabled={draft === null} onClick={() => { saveMetadata(draft ?? "", props.ask.version).then(() => { setDraft(null); props.changed(); }, fail); }}>Save</button></div>
    </Panel>
  );
}
