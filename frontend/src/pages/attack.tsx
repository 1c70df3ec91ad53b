/** Attack: what adversaries know, do and get, the limits, what to change, and the records at most risk. */
import { useState } from "react";
import { post } from "../api";
import { Chart } from "../chart";
import { useReport } from "../report-data";
import type { Attack } from "../report-data";
import { useStore } from "../store";
import { Empty, Notice, Page, Panel, Prose, StateMark, count, follow, percent } from "../ui";

const GETS: Record<string, string> = {
  identity: "finds the row of a person", attribute: "learns a sensitive value of a person", membership: "learns that a person is in the data",
  "singling-out": "describes exactly one person", inference: "infers a value of a person",
};

export function AttackPage() {
  const { report, loading } = useReport();
  const before = new Map((report?.attacks_before ?? []).map((one) => [`${one.attack} ${one.setting ?? ""}`, one]));
  if (!report) return <Page title="Attack" lead="What an adversary gets from the release.">{!loading && <Empty to="/protect" action="Run the recipe">There is no release to attack yet.</Empty>}</Page>;
  return (
    <Page title="Attack" lead="Every attack was run on your own release, with you as the judge. The share is of people looked for; the interval is at 95%."
      actions={<a className="button primary" href="/report" onClick={follow}>Next: report</a>}>
      {report.stale && <Notice kind="open">The {report.stale === "data" ? "data file" : "recipe"} has changed since this run.</Notice>}
      <Panel title="In short">{report.answer.map((text) => <p key={text}>{text}</p>)}
        {report.limits.map((l) => <p key={l.limit}>Limit on {l.limit}: <StateMark state={l.met === null ? "not judged" : l.met ? "met" : "exceeded"} /> (at most {percent(l.value)} against {percent(l.wanted)})</p>)}
      </Panel>
      {report.pictures.risk !== undefined && <Panel title="Risk of each attack"><Chart svg={report.pictures.risk} label="Risk of each attack before and after protection; the cards below have the numbers" /></Panel>}
      {report.advice.length > 0 && (
        <Panel title="What to change">
          {report.advice.map((item, n) => <div key={n}><h3>{item.attack}</h3><p><Prose of={item.finding} /></p><ul>{item.changes.map((change) => <li key={change}><Prose of={change} /></li>)}</ul></div>)}
        </Panel>
      )}
      <div className="columns">
        {report.attacks.map((one, n) => <AttackCard key={n} attack={one} before={before.get(`${one.attack} ${one.setting ?? ""}`)} />)}
      </div>
      {report.riskiest && report.riskiest.length > 0 && <Riskiest rows={report.riskiest} />}
    </Page>
  );
}

function AttackCard(props: { attack: Attack; before: Attack | undefined }) {
  const { attack, before } = props;
  return (
    <Panel title={`${attack.attack}${attack.setting ? `, ${attack.setting}` : ""}`}>
      <p>{attack.threat}</p>
      {attack.risk === null ? <Notice kind="open">Not applicable: {attack.reason}</Notice> : (
        <>
          <p><strong className="big">{percent(attack.risk)}</strong> of the time it {GETS[attack.discloses] ?? "succeeds"}{attack.secret ? ` (${attack.secret})` : ""}; between {percent(attack.low)} and {percent(attack.high)}.</p>
          <table className="list"><caption className="visually-hidden">Figures of {attack.attack}</caption><tbody>
            <tr><th scope="row">knows</th><td>{(attack.knows ?? []).join(", ") || "–"}</td></tr>
            {before && <tr><th scope="row">before protection</th><td>{percent(before.risk)}</td></tr>}
            <tr><th scope="row">baseline, without the release</th><td>{percent(attack.baseline)}</td></tr>
            <tr><th scope="row">control, people not in it</th><td>{attack.control === null ? "none" : percent(attack.control)}</td></tr>
            <tr><th scope="row">people looked for</th><td>{count(attack.tried)}</td></tr>
          </tbody></table>
        </>
      )}
    </Panel>
  );
}

function Riskiest(props: { rows: number[] }) {
  const { fail } = useStore();
  const [shown, setShown] = useState<{ columns: string[]; rows: (string | null)[][] } | null>(null);
  const first = props.rows.slice(0, 20);
  const toggle = () => {
    if (shown) setShown(null);
    else post("/api/data/records", { rows: first }).then((found) => setShown(found as unknown as { columns: string[]; rows: (string | null)[][] }), fail);
  };
  return (
    <Panel title="Records at most risk" aside={<button type="button" aria-pressed={shown !== null} onClick={toggle}>{shown ? "Hide values" : "Show values"}</button>}>
      <p className="muted">Rows of the original that are easiest to find in the release.</p>
      {shown ? (
        <div className="scroll" tabIndex={0} role="region" aria-label="Records at most risk">
          <table className="list"><thead><tr><th scope="col">Row</th>{shown.columns.map((name) => <th scope="col" key={name}>{name}</th>)}</tr></thead>
            <tbody>{shown.rows.map((row, n) => <tr key={n}><th scope="row">{first[n]}</th>{row.map((cell, m) => <td key={m}>{cell ?? ""}</td>)}</tr>)}</tbody></table>
        </div>
      ) : <p>Rows {first.join(", ")}{props.rows.length > first.length ? ` and ${props.rows.length - first.length} more` : ""}.</p>}
    </Panel>
  );
}
