/** Ask: SQL questions with differential privacy, their cost and error beforehand, answers with error bars. */
import { useId, useState } from "react";
import { get, post, saveMetadata } from "../api";
import { AnswerView, SqlEditor } from "../query-parts";
import type { Answer } from "../query-parts";
import { shownError, useLoaded, useStore } from "../store";
import type { Shown } from "../store";
import { ErrorNotice, Notice, Page, Panel } from "../ui";

interface Loss { text: string; epsilon?: string | number }
interface State {
  text: string | null; version: string; path: string; dataset: string; policy: string; columns: string[]; tables: Record<string, string[][]>;
  budget: { cap: Loss | null; spent: Loss | null; left: Loss | null } | null; history: { at: string; analyst: string; text: string }[]; problem: string;
}

export function AskPage() {
  const { state, recipe } = useStore();
  const [round, setRound] = useState(0);
  const loaded = useLoaded(() => get("/api/ask"), [state.project, recipe?.path, round]);
  const ask = loaded.value as unknown as State | null;
  return (
    <Page title="Ask" lead="Answers to SQL questions with differential privacy: noise hides every single person, and a budget limits what all answers together tell.">
      <ErrorNotice error={loaded.error} />
      {ask && (ask.text === null ? <Setup columns={ask.columns} done={() => setRound(round + 1)} /> : <Desktop ask={ask} changed={() => setRound(round + 1)} />)}
    </Page>
  );
}

function Setup(props: { columns: string[]; done: () => void }) {
  const { state, fail } = useStore();
  const [unit, setUnit] = useState("");
  const [epsilon, setEpsilon] = useState("");
  const ids = [useId(), useId()];
  return (
    <Panel title="Set the table up for questions">
      <form onSubmit={(event) => { event.preventDefault(); post("/api/ask/setup", { unit, epsilon, by: state.user }).then(props.done, fail); }}>
        <div className="field"><label htmlFor={ids[0]}>Who is protected: what identifies a person?</label>
          <select id={ids[0]} value={unit} onChange={(event) => setUnit(event.target.value)}>
            <option value="">choose</option><option value="row">row: every row is another person</option>
            {props.columns.map((name) => <option key={name}>{name}</option>)}
          </select></div>
        <div className="field"><label htmlFor={ids[1]}>Budget: total ε of all answers, forever</label>
          <input id={ids[1]} inputMode="decimal" value={epsilon} onChange={(event) => setEpsilon(event.target.value)} />
          <small className="muted">There is no default. 1 is a common choice for a strong promise; each answer spends a part of it.</small></div>
        <button type="submit" className="primary" disabled={!unit || !epsilon}>Set up</button>
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
      {ask.problem && <Notice kind="bad">{ask.problem}</Notice>}
      {ask.budget && <Budget budget={ask.budget} next={Number(epsilon) || 0} />}
      <div className="columns wide-left">
        <div>
          <Panel title="Question">
            <SqlEditor sql={sql} set={(text) => { setSql(text); setPlan(null); }} words={[table, ...(ask.tables[table] ?? []).map((row) => row[0] ?? "")]} />
            <div className="row">
              {ask.policy === "differential-privacy" && <><label htmlFor={ids[0]}>ε of this answer</label><input id={ids[0]} inputMode="decimal" value={epsilon} onChange={(event) => setEpsilon(event.target.value)} /></>}
              <label htmlFor={ids[1]}>Analyst</label><input id={ids[1]} value={analyst} onChange={(event) => setAnalyst(event.target.value)} />
              <button type="button" disabled={busy} onClick={() => run(async () => setPlan(String((await post("/api/ask/explain", question)).text)))}>Explain (free)</button>
              <button type="button" className="primary" disabled={busy} onClick={() => run(async () => { setAnswer((await post("/api/ask/answer", question)) as unknown as Answer); props.changed(); })}>Ask</button>
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
          <Panel title="History">
            {ask.history.length === 0 ? <p className="muted">Nothing was asked yet.</p> : <ol className="history">{ask.history.map((one, n) => <li key={n}><code>{one.text || "question"}</code> <small className="muted">{one.analyst}, {one.at}</small></li>)}</ol>}
          </Panel>
        </div>
      </div>
      <MetadataEditor ask={ask} changed={props.changed} />
    </>
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
