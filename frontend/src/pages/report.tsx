/** Report: for yourself and for the recipient, the sign-off, and handing over the release. */
import { useEffect, useState } from "react";
import { post, ticketed } from "../api";
import { SchemaForm, useForms } from "../form";
import type { Schema } from "../form-model";
import { useReport } from "../report-data";
import type { Framework, Report } from "../report-data";
import { useStore } from "../store";
import { Empty, Notice, OpenPage, Page, Panel, StateMark, TextInput } from "../ui";

export function ReportPage() {
  const { report, loading } = useReport();
  const { state } = useStore();
  const [audience, setAudience] = useState<"internal" | "external">("internal");
  if (!report) return <Page title="Report" lead="The account of the release.">{!loading && <Empty to="/protect" action="Run the recipe">There is no report yet.</Empty>}</Page>;
  return (
    <Page title="Report" lead="The internal report is for you and holds counts of the original. The external one may go to the recipient."
      actions={<OpenPage path={`/report/${audience}`}>Open to print</OpenPage>}>
      {report.stale && <Notice kind="open">The {report.stale === "data" ? "data file" : "recipe"} has changed since this run. Run it again before you hand anything over.</Notice>}
      <Publish unmet={report.unmet} stale={report.stale !== ""} files={report.files} />
      <SignRun key={report.fingerprint} report={report} />
      <Panel title="Report" aside={
        <span className="row" role="group" aria-label="Reader of the report">
          {(["internal", "external"] as const).map((one) => <button key={one} type="button" aria-pressed={audience === one} onClick={() => setAudience(one)}>{one}</button>)}
        </span>}>
        <Framed key={`${audience}-${state.run}`} path={`/report/${audience}`} title={`The ${audience} report`} />
      </Panel>
      <Compliance frameworks={report.compliance ?? []} />
      <About />
    </Page>
  );
}

/** The crosswalk of the last run. Answers are kept in the recipe; a failure of the run stays one whatever is answered. */
function Compliance(props: { frameworks: Framework[] }) {
  const { recipe, setSection } = useStore();
  const about = (recipe?.document.about ?? {}) as Record<string, unknown>;
  const answers = (about.answers ?? {}) as Record<string, string>;
  const set = (key: string, text: string) => {
    const { [key]: _, ...others } = answers;
    const next = text.trim() ? { ...others, [key]: text.trim() } : others;
    const { answers: __, ...rest } = about;
    const whole = Object.keys(next).length ? { ...rest, answers: next } : rest;
    void setSection("about", Object.keys(whole).length ? whole : null);
  };
  const states = (items: Framework["items"]) => items.map((item) => (item.state === "open" && answers[item.key] ? "answered" : item.state === "answered" && !answers[item.key] ? "open" : item.state));
  return (
    <Panel title="Compliance crosswalk">
      <p className="muted">What rules and standards ask, what this run shows, and what you have to answer. It is no legal advice. Answers stand in the internal report after the next run.</p>
      {props.frameworks.map((framework) => {
        const now = states(framework.items);
        const open = now.filter((state) => state === "open" || state === "not met").length;
        return (
          <details key={framework.name}><summary>{framework.title}: {open === 0 ? "nothing open" : `${open} of ${now.length} open`}</summary>
            <p className="muted small">{framework.source}</p>
            <div className="scroll" tabIndex={0} role="region" aria-label={framework.title}><table className="list">
              <thead><tr><th scope="col">Requirement</th><th scope="col">State</th><th scope="col">What the run shows</th><th scope="col">Question for you</th></tr></thead>
              <tbody>{framework.items.map((item, n) => (
                <tr key={item.key}>
                  <th scope="row">{item.reference}<small className="muted block">{item.asks}</small></th><td><StateMark state={now[n]!} /></td><td>{item.evidence || "–"}</td>
                  <td>{item.question && <TextInput label={item.question} value={answers[item.key] ?? ""} onCommit={(text) => set(item.key, text)} />}</td>
                </tr>
              ))}</tbody>
            </table></div>
          </details>
        );
      })}
    </Panel>
  );
}

/** A report of the service in a frame without scripts. */
function Framed(props: { path: string; title: string }) {
  const { fail } = useStore();
  const [address, setAddress] = useState("");
  useEffect(() => { ticketed(props.path).then(setAddress, fail); }, [props.path, fail]);
  return address ? <iframe className="report" title={props.title} src={address} sandbox="" /> : null;
}

/** Sign-off of this run. It changes nothing in the run: what was reviewed is what is handed over. */
function SignRun(props: { report: Report }) {
  const { fail, refresh } = useStore();
  const { signed, fingerprint, stale } = props.report;
  const [names, setNames] = useState({ prepared_by: signed?.prepared_by ?? "", approved_by: signed?.approved_by ?? "", notes: signed?.notes ?? "" });
  const [done, setDone] = useState(signed !== null);
  const change = (key: keyof typeof names, text: string) => { setNames({ ...names, [key]: text }); setDone(false); };
  const sign = () => { post("/api/sign-off", { ...names, fingerprint }).then(() => { setDone(true); void refresh(); }, fail); };
  return (
    <Panel title="Sign this run" aside={done ? <StateMark state="signed" /> : undefined}>
      <p className="muted">The signature names the run by its fingerprint and stands in the internal report that is handed over. A new run is not signed.</p>
      <div className="row">
        <label>Prepared by <input value={names.prepared_by} onChange={(event) => change("prepared_by", event.target.value)} /></label>
        <label>Approved by <input value={names.approved_by} onChange={(event) => change("approved_by", event.target.value)} /></label>
        <label>Notes <input value={names.notes} onChange={(event) => change("notes", event.target.value)} /></label>
        <button type="button" disabled={stale !== "" || done || !(names.prepared_by + names.approved_by).trim()} onClick={sign}>Sign</button>
      </div>
      <p className="muted small">Fingerprint <code className="hash">{fingerprint}</code></p>
    </Panel>
  );
}

function About() {
  const { recipe, setSection } = useStore();
  const forms = useForms();
  const about = (recipe?.document.about ?? {}) as Record<string, unknown>;
  return (
    <Panel title="About the release">
      <p className="muted">Published with the release, so a change needs a new run.</p>
      {forms && <SchemaForm open schema={fields(forms.about)} values={about} onChange={(next) => void setSection("about", Object.keys(next).length ? next : null)} />}
    </Panel>
  );
}

/** The published fields. The crosswalk has the answers, and a run is signed by name. */
function fields(schema: Schema): Schema {
  const { answers: _, prepared_by: __, approved_by: ___, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}

function Publish(props: { unmet: string[]; stale: boolean; files: Record<string, string> }) {
  const { fail } = useStore();
  const [folder, setFolder] = useState("release");
  const [replace, setReplace] = useState(false);
  const [unmet, setUnmet] = useState(false);
  const [done, setDone] = useState<{ release: string; private: string } | null>(null);
  const write = () => {
    setDone(null);
    post("/api/publish", { folder, replace, unmet }).then((found) => setDone(found as unknown as { release: string; private: string }), fail);
  };
  return (
    <Panel title="Hand over">
      {props.unmet.length > 0 && <Notice kind="bad">Models or limits are not met: {props.unmet.join("; ")}.</Notice>}
      <div className="row">
        <label>Folder beside the recipe <input value={folder} onChange={(event) => setFolder(event.target.value)} /></label>
        <label><input type="checkbox" checked={replace} onChange={(event) => setReplace(event.target.checked)} /> replace it</label>
        {props.unmet.length > 0 && <label><input type="checkbox" checked={unmet} onChange={(event) => setUnmet(event.target.checked)} /> write it although limits are not met</label>}
      </div>
      <div className="row">
        <button type="button" className="primary" disabled={props.stale || !folder.trim() || (props.unmet.length > 0 && !unmet)} onClick={write}>Write the release</button>
        {!props.stale && props.unmet.length === 0 && <OpenPage path="/api/package" here>Download the package</OpenPage>}
      </div>
      {done && <Notice kind="good"><p>Publish: <code>{done.release}</code></p><p>Keep private: <code>{done.private}</code> (row map, internal report)</p></Notice>}
      <details><summary>Files and hashes (SHA-256)</summary><table className="list"><tbody>{Object.entries(props.files).map(([name, hash]) => <tr key={name}><th scope="row">{name}</th><td><code className="hash">{hash}</code></td></tr>)}</tbody></table></details>
    </Panel>
  );
}
