/** The study: candidates on a map of risk and utility. A click takes one into the recipe. */
import { useState } from "react";
import { get, post } from "./api";
import type { Forms } from "./form";
import { useLoaded, useStore } from "./store";
import { ErrorNotice, JobView, Notice, Panel, StateMark, percent } from "./ui";

interface Candidate { candidate: string; risk: number | null; risk_high: number | null; loss: number | null; holds: boolean; efficient: boolean; reason?: string; steps: unknown[] }
interface Study { risk: string; utility: string; candidates: Candidate[]; limit: number | null; recommended: string | null }

export function StudyPanel(props: { forms: Forms }) {
  const { job, recipe, fail, refresh, setSection, state } = useStore();
  const running = job("study")?.state === "running";
  const loaded = useLoaded(() => get("/api/study"), [running, state.study]);
  const study = (loaded.value?.study ?? null) as Study | null;
  // Methods without required settings can be tried as they are.
  const alone = (props.forms.parts.steps ?? []).filter((part) => part.main !== "columns" && !(props.forms.definitions[part.definition]?.required ?? []).length);
  const [chosen, setChosen] = useState<string[]>(["generalize", "mondrian", "local-recode"]);
  const own = Array.isArray(recipe?.document.steps) ? (recipe.document.steps as unknown[]) : [];
  const start = () => {
    const candidates = [...(own.length ? [own.length === 1 ? own[0] : own] : []), ...chosen.filter((name) => alone.some((part) => part.name === name))];
    post("/api/jobs", { kind: "study", seconds: 300, targets: 500, candidates }).then(refresh, fail);
  };
  const take = (one: Candidate) => {
    const kept = own.filter((step) => typeof step === "object" && step !== null && "pseudonymize" in step);
    void setSection("steps", [...kept, ...one.steps]);
  };
  return (
    <Panel title="Risk–utility map">
      <p className="muted">Runs several methods with the models and limits of the recipe and compares what an attacker finds with what analysts lose. Finished candidates are kept: a cancelled study continues.</p>
      <fieldset className="checks">
        <legend>Candidates besides the steps of the recipe</legend>
        {alone.map((part) => (
          <label key={part.name} title={part.summary}><input type="checkbox" checked={chosen.includes(part.name)} onChange={(event) =>
            setChosen(event.target.checked ? [...chosen, part.name] : chosen.filter((name) => name !== part.name))} />{part.name}</label>
        ))}
      </fieldset>
      <div className="row"><button type="button" disabled={running || (recipe?.problems.length ?? 0) > 0} onClick={start}>Compare candidates</button></div>
      <JobView job={job("study")} title="Comparing candidates" />
      <ErrorNotice error={loaded.error} />
      {study && <Map study={study} take={take} />}
    </Panel>
  );
}

function Map(props: { study: Study; take: (one: Candidate) => void }) {
  const { study } = props;
  const drawn = study.candidates.filter((one) => one.risk !== null && one.loss !== null);
  const across = Math.max(0.01, ...drawn.map((one) => one.risk_high ?? one.risk ?? 0), study.limit ?? 0) * 1.08;
  const up = Math.max(0.01, ...drawn.map((one) => one.loss ?? 0)) * 1.15;
  const x = (value: number) => 60 + (560 * value) / across;
  const y = (value: number) => 270 - (240 * value) / up;
  return (
    <>
      {study.recommended && <Notice kind="good">Recommended: {study.recommended}, the least loss within the limit.</Notice>}
      {study.limit !== null && !study.recommended && <Notice kind="bad">No candidate meets the limit on risk of {study.limit}.</Notice>}
      <svg className="map" viewBox="0 0 640 310" role="img" aria-label={`${drawn.length} candidates by risk (across) and loss (up); the table has the numbers`}>
        <line x1="60" y1="270" x2="630" y2="270" /><line x1="60" y1="20" x2="60" y2="270" />
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <text x={x((across / 1.08) * part)} y="288" textAnchor="middle">{percent((across / 1.08) * part)}</text>
            <text x="54" y={y((up / 1.15) * part) + 4} textAnchor="end">{((up / 1.15) * part).toPrecision(2)}</text>
          </g>
        ))}
        <text x="345" y="306" textAnchor="middle">risk ({study.risk})</text>
        <text x="14" y="14">loss ({study.utility})</text>
        {study.limit !== null && <><line className="limit" x1={x(study.limit)} x2={x(study.limit)} y1="20" y2="270" /><text x={x(study.limit) + 4} y="30">limit</text></>}
        {drawn.map((one) => (
          <g key={one.candidate} className={one.candidate === study.recommended ? "best" : one.efficient ? "efficient" : ""}>
            <line className="span" x1={x(one.risk!)} x2={x(one.risk_high ?? one.risk!)} y1={y(one.loss!)} y2={y(one.loss!)} />
            <circle cx={x(one.risk!)} cy={y(one.loss!)} r="7" onClick={() => props.take(one)}><title>{one.candidate}: click to take it</title></circle>
            <text x={Math.min(x(one.risk!) + 11, 520)} y={y(one.loss!) - 8}>{one.candidate}</text>
          </g>
        ))}
      </svg>
      <div className="scroll" tabIndex={0} role="region" aria-label="Candidates">
        <table className="list">
          <thead><tr><th scope="col">Candidate</th><th scope="col" className="number">Risk</th><th scope="col" className="number">At most</th><th scope="col" className="number">Loss</th><th scope="col">Models</th><th scope="col"></th></tr></thead>
          <tbody>{study.candidates.map((one) => (
            <tr key={one.candidate}>
              <th scope="row">{one.candidate}{one.candidate === study.recommended ? " (recommended)" : one.efficient ? " (efficient)" : ""}</th>
              <td className="number">{percent(one.risk)}</td><td className="number">{percent(one.risk_high)}</td><td className="number">{one.loss?.toPrecision(3) ?? "–"}</td>
              <td><StateMark state={one.holds ? "holds" : "fails"} /> <small className="muted">{one.reason}</small></td>
              <td><button type="button" onClick={() => props.take(one)}>Take {one.candidate}</button></td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </>
  );
}
