/** Budgets: caps with what is spent, requests for more and their approval, the accumulated loss over time. */
import { useId, useMemo, useState } from "react";
import { Steps } from "../chart";
import type { Line } from "../chart";
import { useLoaded } from "../store";
import { ErrorNotice, Page, Panel, StateMark } from "../ui";
import { lossText, read, send, size, when } from "./api";
import type { Budget, BudgetRequest, Dataset, LossPoint } from "./api";
import type { components } from "./schema";
import { useSession } from "./session";

type CapBody = components["schemas"]["Cap"];

export function BudgetsPage() {
  const { is } = useSession();
  const all = is("owner", "auditor"), analyst = is("analyst");
  const budgets = useLoaded(async () => {
    const found: Budget[] = [];
    if (analyst) found.push(...(await read<{ budgets: Budget[] }>("/api/v1/budget")).budgets);
    if (all) found.push(...(await read<{ budgets: Budget[] }>("/api/v1/budgets")).budgets);
    return [...new Map(found.map((one) => [[one.dataset, one.holder, one.period].join("\0"), one])).values()];
  }, []);
  const requests = useLoaded(() => read<{ requests: BudgetRequest[] }>("/api/v1/budget/requests"), []);
  const datasets = useLoaded(() => (is("analyst", "owner", "auditor") ? read<{ datasets: Dataset[] }>("/api/v1/datasets") : Promise.resolve({ datasets: [] })), []);
  const names = (datasets.value?.datasets ?? []).map((one) => one.name);
  const again = () => { budgets.again(); requests.again(); };
  return (
    <Page title="Budgets" lead="A cap limits what all answers together tell. Spent budget never comes back. An owner sets a first or lower cap alone; a higher one is a request that two other people approve.">
      <ErrorNotice error={budgets.error ?? requests.error} />
      {(analyst || all) && (
        <Panel title={all ? "All budgets" : "Your budgets"}>
          {budgets.value?.length === 0 && <p>No budget is set yet.</p>}
          <div className="scroll" tabIndex={0} role="region" aria-label="Budgets"><table className="list">
            <thead><tr><th scope="col">Data set</th><th scope="col">Holder</th><th scope="col">Period</th><th scope="col">Spent</th><th scope="col">Cap</th><th scope="col">Left</th><th scope="col">Since the beginning</th></tr></thead>
            <tbody>{budgets.value?.map((one) => (
              <tr key={[one.dataset, one.holder, one.period].join(" ")}><th scope="row">{one.dataset || "all"}</th><td>{one.holder || "the data set itself"}</td><td>{one.period}</td>
                <td><Bar budget={one} />{lossText(one.spent)}</td><td>{lossText(one.cap)}</td><td>{lossText(one.left)}</td><td>{lossText(one.since_beginning)}</td></tr>
            ))}</tbody>
          </table></div>
        </Panel>
      )}
      {all && names.length > 0 && <LossOverTime names={names} />}
      <Requests requests={requests.value?.requests ?? []} changed={again} />
      {(is("owner") || analyst) && <NewCap names={names} changed={again} />}
    </Page>
  );
}

function Bar(props: { budget: Budget }) {
  const cap = size(props.budget.cap), spent = size(props.budget.spent);
  if (!cap) return null;
  return <svg className="cap-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect className="cap" width="100" height="6" /><rect className="spent" width={Math.min(100, (100 * spent) / cap)} height="6" /></svg>;
}

/** The loss of a data set after every charge, as steps, with its cap. */
export function LossOverTime(props: { names: string[] }) {
  const [name, setName] = useState(props.names[0] ?? "");
  const id = useId();
  const loss = useLoaded(() => read<{ points: LossPoint[] }>("/api/v1/datasets/{name}/loss", { name }), [name]);
  const points = loss.value?.points ?? [];
  const lines = useMemo((): Line[] => {
    const last = points.at(-1);
    const drawn = last ? [...points, { ...last, at: new Date().toISOString() }] : [];
    const line = (kind: Line["kind"], name: string) => ({ kind, name, points: drawn.flatMap((point) => {
      const loss = kind === "spent" ? point.spent : point.cap;
      return loss ? [{ at: Date.parse(point.at), value: size(loss) }] : [];
    }) });
    return [line("spent", "spent by all analysts"), line("cap", "cap")].filter((one) => one.points.length > 0);
  }, [loss.value]);
  const unit = points.some((point) => point.spent.rho !== undefined) ? "ρ" : "ε";
  return (
    <Panel title="Accumulated loss over time" aside={props.names.length > 1 ? (
      <span><label htmlFor={id}>Data set</label> <select id={id} value={name} onChange={(event) => setName(event.target.value)}>{props.names.map((one) => <option key={one}>{one}</option>)}</select></span>
    ) : undefined}>
      <ErrorNotice error={loss.error} />
      {loss.value && points.length === 0 && <p className="muted">Nothing was charged to {name}, and it has no cap.</p>}
      {points.length > 0 && (
        <>
          {points.length > 1 && <Steps lines={lines} title={`accumulated loss (${unit})`} label={`Accumulated loss of ${name}: ${lossText(points.at(-1)!.spent)} of ${lossText(points.at(-1)!.cap)} at the end; the table has the numbers`} />}
          <details><summary>Numbers ({points.length})</summary>
            <div className="tall" tabIndex={0} role="region" aria-label="Accumulated loss"><table className="list"><thead><tr><th scope="col">Time</th><th scope="col">Entry</th><th scope="col">Spent</th><th scope="col">Cap</th></tr></thead>
              <tbody>{points.map((point) => <tr key={point.entry}><th scope="row">{when(point.at)}</th><td>{point.entry}</td><td>{lossText(point.spent)}</td><td>{lossText(point.cap)}</td></tr>)}</tbody></table></div>
          </details>
        </>
      )}
    </Panel>
  );
}

function Requests(props: { requests: BudgetRequest[]; changed: () => void }) {
  const { me, is, change } = useSession();
  const decides = is("owner", "administrator");
  const act = (path: "/api/v1/budget/requests/{identifier}/approve" | "/api/v1/budget/requests/{identifier}/reject", identifier: string) =>
    void change(() => send("post", path, undefined, { identifier })).then(props.changed);
  return (
    <Panel title="Requests for budget">
      {props.requests.length === 0 ? <p className="muted">There is no request.</p> : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Requests"><table className="list">
          <thead><tr><th scope="col">By</th><th scope="col">For</th><th scope="col">Cap</th><th scope="col">Why</th><th scope="col">Approved by</th><th scope="col">State</th></tr></thead>
          <tbody>{props.requests.map((one) => (
            <tr key={one.id}><th scope="row">{one.by}<small className="muted block">{when(one.at)}</small></th><td>{one.holder || "the data set"} on {one.dataset || "all data sets"}</td><td>{lossText(one.cap)} per {one.period}</td><td>{one.why}</td><td>{one.approvals.join(", ") || "nobody yet"}</td>
              <td>{one.state === "open" && decides && one.by !== me.name
                ? <span className="row"><button type="button" className="primary" disabled={one.approvals.includes(me.name)} onClick={() => act("/api/v1/budget/requests/{identifier}/approve", one.id)}>Approve</button><button type="button" onClick={() => act("/api/v1/budget/requests/{identifier}/reject", one.id)}>Reject</button></span>
                : <StateMark state={one.state} />}</td></tr>
          ))}</tbody>
        </table></div>
      )}
    </Panel>
  );
}

function NewCap(props: { names: string[]; changed: () => void }) {
  const { is, change } = useSession();
  const owner = is("owner");
  const [cap, setCap] = useState({ dataset: "", holder: "", period: "lifetime" as NonNullable<CapBody["period"]>, epsilon: "", delta: "0", why: "" });
  const ids = [useId(), useId(), useId(), useId(), useId(), useId()];
  const body = { ...cap, rho: null };
  const done = (made: unknown) => { if (made) { setCap({ ...cap, epsilon: "", why: "" }); props.changed(); } };
  const ready = cap.epsilon && cap.why.trim() && (cap.dataset || cap.holder || !owner);
  return (
    <Panel title={owner ? "Set or request a cap" : "Ask for budget"}>
      <div className="row">
        <label htmlFor={ids[0]}>Data set</label><select id={ids[0]} value={cap.dataset} onChange={(event) => setCap({ ...cap, dataset: event.target.value })}><option value="">all data sets</option>{props.names.map((name) => <option key={name}>{name}</option>)}</select>
        {owner && <><label htmlFor={ids[1]}>Holder</label><input id={ids[1]} value={cap.holder} onChange={(event) => setCap({ ...cap, holder: event.target.value })} placeholder="analyst, @group, or empty" /></>}
        <label htmlFor={ids[2]}>Period</label><select id={ids[2]} value={cap.period} onChange={(event) => setCap({ ...cap, period: event.target.value as NonNullable<CapBody["period"]> })}>{["lifetime", "year", "month", "question"].map((name) => <option key={name}>{name}</option>)}</select>
        <label htmlFor={ids[3]}>ε</label><input id={ids[3]} inputMode="decimal" size={6} value={cap.epsilon} onChange={(event) => setCap({ ...cap, epsilon: event.target.value })} />
        <label htmlFor={ids[4]}>δ</label><input id={ids[4]} inputMode="decimal" size={8} value={cap.delta} onChange={(event) => setCap({ ...cap, delta: event.target.value || "0" })} />
      </div>
      <div className="row">
        <label htmlFor={ids[5]}>Why</label><input id={ids[5]} className="grow" value={cap.why} onChange={(event) => setCap({ ...cap, why: event.target.value })} />
        {owner && <button type="button" className="primary" disabled={!ready} onClick={() => void change(() => send("put", "/api/v1/budgets", body)).then(done)}>Set the cap</button>}
        {owner && <button type="button" disabled={!ready} onClick={() => void change(() => send("post", "/api/v1/budgets/requests", body)).then(done)}>Request a higher cap</button>}
        {!owner && <button type="button" className="primary" disabled={!ready} onClick={() => void change(() => send("post", "/api/v1/budget/requests", { ...body, holder: "" })).then(done)}>Ask for it</button>}
      </div>
    </Panel>
  );
}
