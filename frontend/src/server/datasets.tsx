/** Data sets: state with the freeze switch, access, and registration. */
import { useId, useState } from "react";
import { useLoaded } from "../store";
import { ErrorNotice, Page, Panel, StateMark } from "../ui";
import { read, send } from "./api";
import type { Dataset, User } from "./api";
import { useSession } from "./session";

export function DatasetsPage() {
  const { is } = useSession();
  const datasets = useLoaded(() => read<{ datasets: Dataset[] }>("/api/v1/datasets"), []);
  return (
    <Page title="Data sets" lead="Who may ask which data. A frozen data set repeats answers that it has given and gives no new ones.">
      <ErrorNotice error={datasets.error} />
      {datasets.value?.datasets.length === 0 && <Panel><p>No data set is registered. Start the server with a metadata file, or register one below.</p></Panel>}
      {datasets.value?.datasets.map((dataset) => <OneDataset key={dataset.name} dataset={dataset} changed={datasets.again} />)}
      {is("owner") && <Register done={datasets.again} />}
    </Page>
  );
}

function OneDataset(props: { dataset: Dataset; changed: () => void }) {
  const { me, is, change } = useSession();
  const { dataset } = props;
  const own = is("owner") && dataset.owner === me.name;
  const [why, setWhy] = useState("");
  const id = useId();
  const set = (state: Dataset["state"]) => void change(() => send("patch", "/api/v1/datasets/{name}", { state, why }, { name: dataset.name })).then((done) => { if (done) { setWhy(""); props.changed(); } });
  const frozen = dataset.state === "frozen";
  return (
    <Panel title={dataset.name} aside={<StateMark state={dataset.state} />}>
      <p>Version {dataset.version}, policy {dataset.policy}, owner {dataset.owner}.</p>
      {own && dataset.state !== "retired" && (
        <div className="row">
          <label htmlFor={id}>Reason</label><input id={id} className="grow" value={why} onChange={(event) => setWhy(event.target.value)} placeholder="why the state changes; stands in the ledger" />
          <button type="button" role="switch" aria-checked={frozen} disabled={!why.trim()} onClick={() => set(frozen ? "active" : "frozen")}>{frozen ? "Frozen: answer questions again" : "Freeze"}</button>
          <button type="button" disabled={!why.trim()} onClick={() => { if (window.confirm(`Retire ${dataset.name}? It cannot be taken back.`)) set("retired"); }}>Retire</button>
        </div>
      )}
      <Grants dataset={dataset.name} own={own} />
    </Panel>
  );
}

function Grants(props: { dataset: string; own: boolean }) {
  const { change } = useSession();
  const names = { name: props.dataset };
  const grants = useLoaded(() => read<{ grants: string[] }>("/api/v1/datasets/{name}/grants", names), [props.dataset]);
  const users = useLoaded(() => read<{ users: User[] }>("/api/v1/users"), []);
  const groups = useLoaded(() => read<{ groups: Record<string, string[]> }>("/api/v1/groups"), []);
  const held = grants.value?.grants ?? [];
  const holders = [...(users.value?.users ?? []).filter((user) => user.roles.includes("analyst")).map((user) => user.name), ...Object.keys(groups.value?.groups ?? {}).map((name) => `@${name}`)];
  return (
    <>
      <h3>May ask</h3>
      <ErrorNotice error={grants.error} />
      {held.length === 0 && <p className="muted">Nobody yet.</p>}
      <ul>{held.map((holder) => <li key={holder}>{holder} {props.own && <button type="button" className="quiet" onClick={() => void change(() => send("delete", "/api/v1/datasets/{name}/grants/{holder}", undefined, { ...names, holder })).then(grants.again)}>Withdraw from {holder}</button>}</li>)}</ul>
      {props.own && (
        <select aria-label={`Let somebody ask ${props.dataset}`} value="" onChange={(event) => void change(() => send("put", "/api/v1/datasets/{name}/grants/{holder}", undefined, { ...names, holder: event.target.value })).then(grants.again)}>
          <option value="">let an analyst or a group ask</option>
          {holders.filter((holder) => !held.includes(holder)).map((holder) => <option key={holder}>{holder}</option>)}
        </select>
      )}
      <p className="muted small">Access alone is not enough: set a budget for them on the Budgets page.</p>
    </>
  );
}

function Register(props: { done: () => void }) {
  const { change } = useSession();
  const [metadata, setMetadata] = useState("");
  const id = useId();
  return (
    <Panel title="Register a data set, or a new version">
      <p className="muted">Paste the metadata file (<code>sfumato init FILE --query</code> proposes one). Its paths start from the data folder of the server.</p>
      <form onSubmit={(event) => { event.preventDefault(); void change(() => send("post", "/api/v1/datasets", { metadata })).then((made) => { if (made) { setMetadata(""); props.done(); } }); }}>
        <label htmlFor={id} className="visually-hidden">Metadata</label>
        <textarea id={id} className="sql" rows={8} spellCheck={false} value={metadata} onChange={(event) => setMetadata(event.target.value)} />
        <div className="row"><button type="submit" disabled={!metadata.trim()}>Register</button></div>
      </form>
    </Panel>
  );
}
