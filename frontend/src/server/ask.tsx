/** Ask: SQL questions about a data set of the server, with their cost and error beforehand. */
import { useEffect, useId, useState } from "react";
import { request } from "../http";
import { AnswerView, SqlEditor } from "../query-parts";
import type { Answer } from "../query-parts";
import { shownError, useLoaded } from "../store";
import type { Shown } from "../store";
import { Empty, ErrorNotice, Notice, Page, Panel } from "../ui";
import { lossText, read, send, size } from "./api";
import type { Budget, Dataset } from "./api";
import { useSession } from "./session";

interface Column { column: string; kind: string; [name: string]: string }
interface Schema { tables: { name: string; access: string; unit: string; columns: Column[] }[] }

export function AskPage() {
  const datasets = useLoaded(() => read<{ datasets: Dataset[] }>("/api/v1/datasets"), []);
  const [name, setName] = useState("");
  const id = useId();
  const known = datasets.value?.datasets ?? [];
  const chosen = known.find((one) => one.name === name) ?? known[0];
  return (
    <Page title="Ask" lead="Answers are protected by the policy of the data set. With differential privacy each answer spends a part of your budget."
      actions={known.length > 1 ? <><label htmlFor={id}>Data set</label><select id={id} value={chosen?.name} onChange={(event) => setName(event.target.value)}>{known.map((one) => <option key={one.name}>{one.name}</option>)}</select></> : undefined}>
      <ErrorNotice error={datasets.error} />
      {datasets.value && !chosen && <Empty>You may not ask any data set yet. Ask its owner for access and a budget.</Empty>}
      {chosen && <Desk key={chosen.name} dataset={chosen} />}
    </Page>
  );
}

function Desk(props: { dataset: Dataset }) {
  const { dataset } = props;
  const { me } = useSession();
  const names = { name: dataset.name };
  const schema = useLoaded(() => read<Schema>("/api/v1/datasets/{name}/schema", names), [dataset.name]);
  const budget = useLoaded(() => read<{ budgets: Budget[] }>("/api/v1/budget"), [dataset.name]);
  const spends = dataset.policy === "differential-privacy";
  const [sql, setSql] = useState("");
  const [epsilon, setEpsilon] = useState("0.1");
  const [plan, setPlan] = useState<string | null>(null);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<Shown | null>(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const first = schema.value?.tables[0]?.name;
  useEffect(() => { if (first) setSql((old) => old || `SELECT COUNT(*) AS n FROM ${first}`); }, [first]);
  const body = { sql, epsilon: spends ? epsilon || null : null };
  const run = (action: () => Promise<void>) => { setBusy(true); setError(null); setAnswer(null); action().catch((cause: unknown) => setError(shownError(cause))).finally(() => setBusy(false)); };
  const words = (schema.value?.tables ?? []).flatMap((table) => [table.name, ...table.columns.map((column) => column.column ?? Object.values(column)[0] ?? "")]);
  const own = (budget.value?.budgets ?? []).filter((one) => one.dataset === dataset.name || !one.dataset);
  return (
    <>
      {dataset.state === "frozen" && <Notice kind="open">The data set is frozen: answers that were given are repeated, new questions are refused.</Notice>}
      {spends && own.map((one) => <BudgetBar key={`${one.dataset}${one.period}`} budget={one} next={Number(epsilon) || 0} />)}
      {spends && budget.value && own.length === 0 && <Notice kind="open">You have no budget of your own here. The budget of the data set or of a group of yours may still allow answers; ask for one on the Budgets page.</Notice>}
      <div className="columns wide-left">
        <div>
          <Panel title="Question">
            <SqlEditor sql={sql} set={(text) => { setSql(text); setPlan(null); }} words={words} />
            <div className="row">
              {spends && <><label htmlFor={id}>ε of this answer</label><input id={id} inputMode="decimal" value={epsilon} onChange={(event) => setEpsilon(event.target.value)} /></>}
              <button type="button" disabled={busy || !sql.trim()} onClick={() => run(async () => setPlan(String(((await send("post", "/api/v1/datasets/{name}/explain", body, names)) as { text: string }).text)))}>Explain (free)</button>
              <button type="button" className="primary" disabled={busy || !sql.trim()} onClick={() => run(async () => { setAnswer(await request<Answer>("POST", `/api/v1/datasets/${encodeURIComponent(dataset.name)}/ask`, body)); budget.again(); })}>Ask</button>
              <span className="tag">{dataset.policy}</span>
            </div>
            <ErrorNotice error={error} />
            {plan && <pre className="plan" aria-label="Cost and expected error">{plan}</pre>}
          </Panel>
          {answer && <AnswerView answer={answer} />}
        </div>
        <Panel title="What can be asked">
          <ErrorNotice error={schema.error} />
          {schema.value?.tables.map((table) => {
            const titles = Object.keys(table.columns[0] ?? {});
            return (
              <div key={table.name} className="scroll" tabIndex={0} role="region" aria-label={`Columns of ${table.name}`}><table className="list"><caption>{table.name}: {table.access}{table.unit && `, unit ${table.unit}`}</caption>
                <thead><tr>{titles.map((title) => <th scope="col" key={title}>{title}</th>)}</tr></thead>
                <tbody>{table.columns.map((column, n) => <tr key={n}>{titles.map((title, m) => (m ? <td key={title} className="small">{column[title]}</td> : <th scope="row" key={title}>{column[title]}</th>))}</tr>)}</tbody></table></div>
            );
          })}
          <p className="muted small">Signed in as {me.name}. Programs ask with a token of the Account page.</p>
        </Panel>
      </div>
    </>
  );
}

function BudgetBar(props: { budget: Budget; next: number }) {
  const { budget } = props;
  const cap = size(budget.cap), spent = size(budget.spent), next = Math.min(props.next, Math.max(0, cap - spent));
  if (!budget.cap) return null;
  return (
    <Panel title={`Your budget on ${budget.dataset || "all data sets"}${budget.period === "lifetime" ? "" : ` per ${budget.period}`}`}>
      <div className="budget" role="img" aria-label={`spent ${lossText(budget.spent)} of ${lossText(budget.cap)}; the next answer takes ${props.next}`}>
        <svg viewBox="0 0 100 6" preserveAspectRatio="none"><rect className="cap" width="100" height="6" /><rect className="spent" width={(100 * spent) / (cap || 1)} height="6" /><rect className="next" x={(100 * spent) / (cap || 1)} width={(100 * next) / (cap || 1)} height="6" /></svg>
      </div>
      <p>Spent {lossText(budget.spent)} of {lossText(budget.cap)}; left {lossText(budget.left)}. The part beside it is what this answer would take.</p>
    </Panel>
  );
}
