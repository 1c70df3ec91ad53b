/** Protect: presets, models, methods, limits, and running the recipe. */
import { useId, useState } from "react";
import { post } from "../api";
import { useForms } from "../form";
import { LatticePanel } from "../lattice";
import { PartList } from "../parts";
import { useReport } from "../report-data";
import { StudyPanel } from "../study";
import { columnsOf, useStore } from "../store";
import { Empty, JobView, Notice, Page, Panel, Prose, StateMark, TextInput, follow, percent, type Way, waysOf } from "../ui";

export function ProtectPage() {
  const { state, recipe, edit, job, fail, refresh } = useStore();
  const forms = useForms();
  const { report } = useReport();
  const [seconds, setSeconds] = useState("120");
  const [targets, setTargets] = useState("1000");
  const ids = [useId(), useId()];
  if (!recipe?.text) return <Page title="Protect" lead="Models, methods and limits."><Empty to="/data" action="Look at the data">There is no recipe yet; the file is still being read.</Empty></Page>;
  const open = Object.values(columnsOf(recipe)).filter((column) => column.role === "undecided").length;
  const running = job("protect")?.state === "running";
  const refused = waysOf(job("protect"));
  const run = () => {
    const limit = Number(seconds);
    post("/api/jobs", { kind: "protect", seconds: limit > 0 ? limit : null, targets: Math.max(1, Math.round(Number(targets)) || 1000), candidates: [] }).then(refresh, fail);
  };
  return (
    <Page title="Protect" lead="Choose what must hold (models), how the data is changed (steps), and how much risk is acceptable (limits). Then run the recipe: it masks, attacks and measures."
      actions={<a className="button" href="/attack" onClick={follow}>Next: attack</a>}>
      <Panel title="Run">
        {open > 0 && <Notice kind="open">{open} {open === 1 ? "column is" : "columns are"} undecided, so a run would be refused. <a href="/roles" onClick={follow}>Decide on the Roles page.</a></Notice>}
        {recipe.problems.length > 0 && <Notice kind="bad">The recipe has {recipe.problems.length} {recipe.problems.length === 1 ? "problem" : "problems"}: <Prose of={recipe.problems.map((p) => `${String(p.where)} ${String(p.message)}`).join("; ")} /></Notice>}
        <div className="row">
          <label htmlFor={ids[0]}>Seconds for attacks and measures</label>
          <input id={ids[0]} type="number" min="1" value={seconds} onChange={(e) => setSeconds(e.target.value)} />
          <label htmlFor={ids[1]}>Targets per attack</label>
          <input id={ids[1]} type="number" min="1" value={targets} onChange={(e) => setTargets(e.target.value)} />
          <button type="button" className="primary" disabled={running || open > 0 || recipe.problems.length > 0} onClick={run}>Run the recipe</button>
        </div>
        <JobView job={job("protect")} title="Running the recipe" />
        {refused.length > 0 && <WaysOut ways={refused} then={run} />}
        {report && !running && (
          <>
            {report.stale && <Notice kind="open">The {report.stale === "data" ? "data file" : "recipe"} has changed since this run. Run it again.</Notice>}
            <Notice kind={report.unmet.length ? "bad" : report.limits.length ? "good" : "open"}>
              <strong>{report.unmet.length ? <Prose of={`Not met: ${report.unmet.join("; ")}.`} /> : report.limits.length ? "All models and limits are met." : "All models are met. No limit on risk is set, so the risk is not judged."}</strong>
              <p>{report.answer[0]}</p>
            </Notice>
            <table className="list"><caption className="visually-hidden">Verdicts</caption><tbody>
              {report.verdicts.map((v, n) => <tr key={n}><th scope="row">{v.model}</th><td><StateMark state={v.state} /></td><td>worst {v.worst ?? "–"}, wanted {v.wanted ?? "–"} <Prose of={v.reason ?? ""} /></td></tr>)}
              {report.limits.map((l) => <tr key={l.limit}><th scope="row">limit on {l.limit}</th><td><StateMark state={l.met === null ? "not judged" : l.met ? "met" : "exceeded"} /></td><td>at most {percent(l.wanted)}, {l.words}</td></tr>)}
            </tbody></table>
            {!report.stale && report.ways.length > 0 && <WaysOut ways={report.ways} then={run} />}
          </>
        )}
      </Panel>
      {!forms && <Notice kind="open">Collecting the methods and models…</Notice>}
      {forms && (
        <>
          <Panel title="Presets">
            <p className="muted">A preset sets models, steps, attacks, measures and limits. Undo brings back what was there.</p>
            <div className="cards">
              {forms.presets.map((preset) => (
                <div key={preset.name} className="card">
                  <h3>{preset.name}</h3>
                  <p className="small">{preset.about}</p>
                  <button type="button" onClick={() => void edit(() => post("/api/recipe/preset", { name: preset.name }))}>Use {preset.name}</button>
                </div>
              ))}
            </div>
          </Panel>
          <div className="columns">
            <PartList forms={forms} section="models" noun="model" title="Models" lead="Promises about the release, checked after masking." none="No model is set." />
            <PartList forms={forms} section="steps" noun="step" title="Steps" lead="Methods that change the data, in this order." none="No step: only identifiers are removed." />
          </div>
          <Limits names={forms.limits} />
          <LatticePanel />
          <StudyPanel forms={forms} />
          <div className="columns">
            <PartList forms={forms} section="attacks" noun="attack" title="Attacks" lead="What adversaries try." none="The default attacks run." />
            <PartList forms={forms} section="measures" noun="measure" title="Measures" lead="Risk and utility figures in the report." none="The default measures are taken." />
          </div>
        </>
      )}
      {state.run === null && !running && <p className="muted">No run yet.</p>}
    </Page>
  );
}

/** What must give where a limit or a model is not met: one choice, decided and run again. */
function WaysOut(props: { ways: Way[]; then: () => void }) {
  const { state, edit } = useStore();
  const [by, setBy] = useState(state.user);
  const [reason, setReason] = useState("");
  const ids = [useId(), useId()];
  const choose = (way: Way) => {
    void edit((version) => post("/api/recipe/decide", { roles: way.roles, rest: null, accept: way.accepts, unit: way.unit, k: way.k, by, reason: way.accepts ? reason : null, version })).then((ok) => { if (ok) props.then(); });
  };
  return (
    <fieldset>
      <legend>What must give? Each button decides it and runs the recipe again.</legend>
      <div className="row">
        <label htmlFor={ids[0]}>Decided by</label>
        <input id={ids[0]} value={by} onChange={(event) => setBy(event.target.value)} />
        {props.ways.some((way) => way.accepts) && (
          <>
            <label htmlFor={ids[1]}>Why no attacker knows these columns (to accept)</label>
            <input id={ids[1]} className="grow" value={reason} onChange={(event) => setReason(event.target.value)} />
          </>
        )}
      </div>
      <div className="row">
        {props.ways.map((way) => (
          <button key={way.does} type="button" disabled={!by.trim() || (way.accepts && !reason.trim())} onClick={() => choose(way)}>
            <Prose of={way.does.charAt(0).toUpperCase() + way.does.slice(1)} />
          </button>
        ))}
      </div>
    </fieldset>
  );
}

function Limits(props: { names: string[] }) {
  const { recipe, setSection } = useStore();
  const limits = (recipe?.document.limits ?? {}) as Record<string, unknown>;
  const accepted = (limits.accepted ?? {}) as { by?: string; reason?: string };
  const set = (name: string, value: unknown) => {
    const next: Record<string, unknown> = { ...limits, [name]: value };
    if (value === null || value === "") delete next[name];
    void setSection("limits", Object.keys(next).length ? next : null);
  };
  const [draft, setDraft] = useState<{ by: string; reason: string } | null>(null);
  const shown = draft ?? { by: accepted.by ?? "", reason: accepted.reason ?? "" };
  return (
    <Panel title="Limits">
      <p className="muted">The largest acceptable success of an attack, as a share from 0 to 1. Without a limit on risk there is no verdict. 0.09 is the threshold of EMA Policy 0070 for public files.</p>
      <div className="row">
        {props.names.filter((name) => name !== "accepted").map((name) => (
          <TextInput key={name} label={name} type="number" value={limits[name] === undefined ? "" : String(limits[name])} onCommit={(text) => set(name, text === "" ? null : Number(text))} />
        ))}
      </div>
      <details>
        <summary>Accept attackers who know columns that are no quasi-identifiers</summary>
        <form className="row" onSubmit={(event) => { event.preventDefault(); set("accepted", shown.by.trim() && shown.reason.trim() ? shown : null); setDraft(null); }}>
          <label>By <input value={shown.by} onChange={(e) => setDraft({ ...shown, by: e.target.value })} /></label>
          <label>Reason <input value={shown.reason} onChange={(e) => setDraft({ ...shown, reason: e.target.value })} /></label>
          <button type="submit">Set</button>
        </form>
      </details>
    </Panel>
  );
}
