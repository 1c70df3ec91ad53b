/** Roles: proposals with their reasons, decisions of the person, and what columns single people out. */
import { useEffect, useId, useState } from "react";
import { get, post } from "../api";
import { columnsOf, decisions, unconfirmed, useLoaded, useStore } from "../store";
import { Bars, Empty, JobView, Notice, Page, Panel, ROLES, Role, StateMark, count, follow, percent } from "../ui";

interface Found { column: string; role: string; reason: string; hipaa: string | null; distinct: number; missing: number }
interface Combination { columns: string[]; unique: number }
interface Proposal { columns: Found[]; register: Combination | null; quasi: Combination | null; singling: { minimal: Combination[]; others: Combination[] } | null }

export function RolesPage() {
  const { state, recipe, job, edit } = useStore();
  const profile = useLoaded(() => get("/api/data/profile"), [state.profiled, state.project]);
  const proposal = profile.value?.proposal as Proposal | null | undefined;
  const hipaa = (profile.value?.hipaa ?? {}) as Record<string, string>;
  const columns = columnsOf(recipe);
  const names = Object.keys(columns);
  const [by, setBy] = useState(state.user);
  const [pending, setPending] = useState<{ name: string; role: string } | null>(null);
  const [many, setMany] = useState("");
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const [byRole, setByRole] = useState(false);
  const open = names.filter((name) => columns[name]?.role === "undecided");
  const proposed = unconfirmed(recipe);
  const matching = names.filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  const shown = byRole ? matching.toSorted((a, b) => (columns[a]?.role ?? "").localeCompare(columns[b]?.role ?? "")) : matching;
  const several = chosen.length > 0 ? chosen.filter((name) => name in columns) : open.filter((name) => shown.includes(name));
  const found = new Map((proposal?.columns ?? []).map((column) => [column.column, column]));
  const byId = useId();
  const decide = (roles: Record<string, string>, restRole: string | null, reason: string | null) =>
    edit((version) => post("/api/recipe/decide", { roles, rest: restRole, accept: false, unit: null, by, reason, version }));
  if (!recipe?.text) return (
    <Page title="Roles" lead="What each column says about people."><JobView job={job("profile")} title="Looking at the columns" />
      {job("profile")?.state !== "running" && <Empty to="/data" action="Look at the data">There is no proposal yet.</Empty>}</Page>
  );
  return (
    <Page title="Roles" lead="Each column has a proposed role with its reason. Confirm or change it. Columns that nobody has decided are refused by a run."
      actions={<a className="button primary" href="/protect" onClick={follow}>Next: protect</a>}>
      <JobView job={job("profile")} title="Looking at the columns" />
      <div className="columns wide-left">
        <Panel title="Columns" aside={<StateMark state={decisions(recipe)} />}>
          <div className="row">
            <label htmlFor={byId}>Decided by</label>
            <input id={byId} value={by} onChange={(event) => setBy(event.target.value)} />
            {proposed.length > 0 && (
              <button type="button" onClick={() => void decide(Object.fromEntries(proposed.map((name) => [name, columns[name]?.role ?? "undecided"])), null, null)}>
                Confirm {proposed.length} proposed {proposed.length === 1 ? "role" : "roles"}
              </button>
            )}
          </div>
          <div className="row">
            <input aria-label="Show columns whose name contains" placeholder="name contains" value={filter} onChange={(event) => setFilter(event.target.value)} />
            <label><input type="checkbox" checked={byRole} onChange={(event) => setByRole(event.target.checked)} /> sort by role</label>
            {several.length > 0 && (
              <>
                <select aria-label="Role of several columns" value={many} onChange={(event) => setMany(event.target.value)}>
                  <option value="" disabled>choose a role</option>
                  {Object.keys(ROLES).filter((role) => !["undecided", "weight", "household", "plain"].includes(role)).map((role) => <option key={role}>{role}</option>)}
                </select>
                <button type="button" disabled={!many} onClick={() => void decide(Object.fromEntries(several.map((name) => [name, many])), null, null).then((ok) => { if (ok) { setChosen([]); setMany(""); } })}>
                  {chosen.length > 0 ? `Decide ${several.length} selected` : `Decide all ${several.length} undecided`}
                </button>
              </>
            )}
          </div>
          <div className="scroll" tabIndex={0} role="region" aria-label="Roles of the columns">
            <table className="list">
              <thead><tr><th scope="col"><input type="checkbox" aria-label="Select all shown columns" checked={shown.length > 0 && shown.every((name) => chosen.includes(name))} onChange={(event) => setChosen(event.target.checked ? shown : [])} /></th><th scope="col">Column</th><th scope="col">Role</th><th scope="col">Reason</th></tr></thead>
              <tbody>
                {shown.map((name) => {
                  const column = columns[name]!;
                  const proposed = found.get(name);
                  const role = column.role ?? "undecided";
                  return (
                    <tr key={name}>
                      <td><input type="checkbox" aria-label={`Select ${name}`} checked={chosen.includes(name)} onChange={(event) => setChosen(event.target.checked ? [...chosen, name] : chosen.filter((other) => other !== name))} /></td>
                      <th scope="row"><span className={`role-name role-${role}`}>{name}</span></th>
                      <td>
                        <select aria-label={`Role of ${name}`} className={`role role-${role}`} value={role} onChange={(event) => {
                          const next = event.target.value;
                          if (next === "plain") setPending({ name, role: next });
                          else void decide({ [name]: next }, null, null);
                        }}>
                          {Object.entries(ROLES).map(([value, words]) => <option key={value} value={value} disabled={value === "undecided"} title={words}>{value}</option>)}
                        </select>
                        {pending?.name === name && (
                          <Reason cancel={() => setPending(null)} done={(reason) => {
                            void decide({ [name]: "plain" }, null, reason).then((ok) => { if (ok) setPending(null); });
                          }} />
                        )}
                      </td>
                      <td>
                        {column.decided_by ? <span>decided by {column.decided_by}{column.reason ? `: ${column.reason}` : ""} </span> : null}
                        <span className={column.decided_by ? "muted small block" : ""}>{proposed ? `proposed ${proposed.role}: ${proposed.reason}` : "not in the profile"}</span>
                        {proposed?.hipaa && <span className="tag" title={hipaa[proposed.hipaa]}>HIPAA {proposed.hipaa}: {hipaa[proposed.hipaa]}</span>}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        </Panel>
        <div>
          <SinglingOut columns={names} quasi={names.filter((name) => columns[name]?.role === "quasi")} />
          {proposal && <Combinations proposal={proposal} />}
          <Hipaa hipaa={hipaa} found={proposal?.columns ?? []} />
          <Panel title="What the roles mean">
            <dl className="roles">{Object.entries(ROLES).map(([role, words]) => <div key={role}><dt><Role role={role} /></dt><dd>{words}</dd></div>)}</dl>
          </Panel>
        </div>
      </div>
    </Page>
  );
}

function Reason(props: { done: (reason: string) => void; cancel: () => void }) {
  const [reason, setReason] = useState("");
  const id = useId();
  return (
    <form className="reason" onSubmit={(event) => { event.preventDefault(); props.done(reason); }}>
      <label htmlFor={id}>Why can nobody use it to find a person?</label>
      <input id={id} autoFocus value={reason} onChange={(event) => setReason(event.target.value)} />
      <button type="submit" disabled={!reason.trim()}>Decide plain</button>
      <button type="button" onClick={props.cancel}>Cancel</button>
    </form>
  );
}

interface Uniqueness { unique: number; classes: number; smallest: number; rows: number; sizes: [string, number][] }

function SinglingOut(props: { columns: string[]; quasi: string[] }) {
  const [chosen, setChosen] = useState<string[] | null>(null);
  const columns = chosen ?? props.quasi;
  const key = columns.join("\0");
  const [found, setFound] = useState<Uniqueness | null>(null);
  useEffect(() => {
    let current = true;
    post("/api/data/uniqueness", { columns }).then((value) => { if (current) setFound(value as unknown as Uniqueness); }, () => undefined);
    return () => { current = false; };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return (
    <Panel title="What singles people out" aside={chosen && <button type="button" className="quiet" onClick={() => setChosen(null)}>back to quasi-identifiers</button>}>
      {found && columns.length > 0 && (
        <div aria-live="polite">
          <p><strong className="big">{percent(found.unique)}</strong> of {count(found.rows)} rows are the only one with their values in {columns.length === 1 ? "this column" : `these ${columns.length} columns`}. The smallest group has {count(found.smallest)} {found.smallest === 1 ? "row" : "rows"}.</p>
          <Bars label="Rows by size of their group" rows={found.sizes} most={1} />
        </div>
      )}
      <fieldset className="checks">
        <legend>Columns that an attacker knows</legend>
        {props.columns.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={columns.includes(name)} onChange={(event) =>
              setChosen(event.target.checked ? [...columns, name] : columns.filter((other) => other !== name))} />
            {name}
          </label>
        ))}
      </fieldset>
    </Panel>
  );
}

function Combinations(props: { proposal: Proposal }) {
  const { singling, register, quasi } = props.proposal;
  const rows: [Combination, string][] = [];
  if (register) rows.push([register, "in voter lists and other registers"]);
  if (quasi && quasi.columns.join() !== register?.columns.join()) rows.push([quasi, "all proposed quasi-identifiers"]);
  for (const one of (singling?.minimal.length ? singling.minimal : singling?.others) ?? []) rows.push([one, "smallest combination"]);
  if (!rows.length) return null;
  return (
    <Panel title="Combinations that were found">
      <table className="list">
        <thead><tr><th scope="col" className="number">Unique rows</th><th scope="col">Columns</th></tr></thead>
        <tbody>{rows.slice(0, 10).map(([one, words], n) => <tr key={n}><td className="number">{percent(one.unique)}</td><td>{one.columns.join(" + ")} <small className="muted">{words}</small></td></tr>)}</tbody>
      </table>
    </Panel>
  );
}

function Hipaa(props: { hipaa: Record<string, string>; found: Found[] }) {
  const hits = props.found.filter((column) => column.hipaa);
  return (
    <Panel title="HIPAA identifier list">
      {hits.length === 0 && <Notice kind="open">No column was recognized as one of the 18 Safe Harbor identifiers. Check the list yourself.</Notice>}
      <details>
        <summary>18 identifiers of Safe Harbor</summary>
        <table className="list">
          <tbody>{Object.entries(props.hipaa).map(([letter, words]) => (
            <tr key={letter}><th scope="row">{letter}</th><td>{words}</td><td>{hits.filter((c) => c.hipaa === letter).map((c) => c.column).join(", ")}</td></tr>
          ))}</tbody>
        </table>
      </details>
    </Panel>
  );
}
