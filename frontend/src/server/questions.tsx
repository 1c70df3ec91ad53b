/** Questions: the log. Analysts see their own and read answers again; owners and auditors see who asked what. */
import { useState } from "react";
import { AnswerView } from "../query-parts";
import type { Answer } from "../query-parts";
import { useLoaded } from "../store";
import { ErrorNotice, Page, Panel, Prose, StateMark } from "../ui";
import { read, when } from "./api";
import type { Question } from "./api";
import { useSession } from "./session";

export function QuestionsPage() {
  const { is, me, change } = useSession();
  const audits = is("owner", "auditor");
  const [own, setOwn] = useState(!audits);
  const [words, setWords] = useState("");
  const [answer, setAnswer] = useState<{ question: Question; answer: Answer } | null>(null);
  const loaded = useLoaded(() => read<{ questions: Question[] }>(own ? "/api/v1/questions" : "/api/v1/audit/questions", {}, "?most=500"), [own]);
  const wanted = words.toLowerCase();
  const found = (loaded.value?.questions ?? []).filter((one) => [one.sql, one.analyst, one.dataset, one.state].some((text) => text.toLowerCase().includes(wanted)));
  return (
    <Page title="Questions" lead="Every question is logged before it is answered. This log is the only place that keeps their texts.">
      <Panel title={own ? "Your questions" : is("auditor") ? "Questions of all analysts" : "Questions about your data sets"} aside={
        <span className="row">
          {audits && is("analyst") && <button type="button" aria-pressed={own} onClick={() => setOwn(!own)}>Only mine</button>}
          <label>Search <input type="search" value={words} onChange={(event) => setWords(event.target.value)} /></label>
        </span>}>
        <ErrorNotice error={loaded.error} />
        {loaded.value && found.length === 0 && <p className="muted">{loaded.value.questions.length ? "No question fits the search." : "Nothing was asked yet."}</p>}
        <div className="scroll tall" tabIndex={0} role="region" aria-label="Questions"><table className="list">
          <thead><tr><th scope="col">When</th><th scope="col">Analyst</th><th scope="col">Data set</th><th scope="col">Question</th><th scope="col">Cost</th><th scope="col">State</th></tr></thead>
          <tbody>{found.map((one) => (
            <tr key={one.id}><th scope="row">{when(one.at)}</th><td>{one.analyst}</td><td>{one.dataset}</td><td><code>{one.sql}</code>{one.error && <small className="bad-text block"><Prose of={one.error.message} /></small>}</td>
              <td>{one.options.epsilon ? `ε = ${one.options.epsilon}` : one.options.rho ? `ρ = ${one.options.rho}` : "–"}{one.charges === 0 && one.state === "done" && <small className="muted block">free: asked before</small>}</td>
              <td><StateMark state={one.state} />{one.state === "done" && one.analyst === me.name && is("analyst") && !one.options.workload && (
                <button type="button" className="quiet" onClick={() => void change(() => read<Answer>("/api/v1/questions/{identifier}/result", { identifier: one.id })).then((result) => { if (result) setAnswer({ question: one, answer: result as unknown as Answer }); })}>Answer again (free)</button>
              )}</td></tr>
          ))}</tbody>
        </table></div>
      </Panel>
      {answer && <><p><code>{answer.question.sql}</code></p><AnswerView answer={answer.answer} /></>}
    </Page>
  );
}
