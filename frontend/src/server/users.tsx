/** Users: accounts, roles, one-time links and groups. People make their tokens themselves. */
import { useId, useState } from "react";
import { useLoaded } from "../store";
import { ErrorNotice, Notice, Page, Panel, StateMark } from "../ui";
import { read, send, when } from "./api";
import type { Token, User } from "./api";
import type { components } from "./schema";
import { useSession } from "./session";
import { Tokens } from "./tokens";

type AccountRole = components["schemas"]["AccountRole"];
const ROLES: Record<AccountRole, string> = {
  administrator: "runs the server: users, groups, tokens", owner: "registers data sets, grants access, sets budgets",
  analyst: "asks questions", auditor: "reads everything except data, changes nothing",
};

export function UsersPage() {
  const { is } = useSession();
  const users = useLoaded(() => read<{ users: User[] }>("/api/v1/users"), []);
  const [link, setLink] = useState<{ name: string; link: string } | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const shown = users.value?.users.find((user) => user.name === chosen);
  return (
    <Page title="Users" lead="An account has roles. Every change is entered in the ledger with who made it.">
      <ErrorNotice error={users.error} />
      {link && (
        <Notice kind="good">
          <p>One-time link for <strong>{link.name}</strong>. It works once, within 30 minutes. Give it to them by a safe way:</p>
          <code className="secret">{window.location.origin}{link.link}</code> <button type="button" onClick={() => setLink(null)}>Close</button>
        </Notice>
      )}
      <div className="columns wide-left">
        <Panel title="Accounts">
          <div className="scroll" tabIndex={0} role="region" aria-label="Accounts"><table className="list">
            <thead><tr><th scope="col">User</th><th scope="col">Roles</th><th scope="col">Groups</th><th scope="col">Since</th><th scope="col">State</th><th scope="col"></th></tr></thead>
            <tbody>{users.value?.users.map((user) => (
              <tr key={user.name}><th scope="row">{user.name}</th><td>{user.roles.join(", ")}</td><td>{user.groups.join(", ")}</td><td>{when(user.created)}</td>
                <td><StateMark state={user.active ? "active" : "deactivated"} /></td>
                <td><button type="button" aria-pressed={chosen === user.name} onClick={() => setChosen(chosen === user.name ? null : user.name)}>Show {user.name}</button></td></tr>
            ))}</tbody>
          </table></div>
        </Panel>
        <div>
          {is("administrator") && <NewUser done={(name, made) => { setLink({ name, link: made }); users.again(); }} />}
          <Groups users={users.value?.users ?? []} changed={users.again} />
        </div>
      </div>
      {shown && <OneUser key={shown.name} user={shown} changed={users.again} linked={(made) => setLink({ name: shown.name, link: made })} />}
    </Page>
  );
}

function RoleChoice(props: { roles: AccountRole[]; disabled?: boolean; onChange: (roles: AccountRole[]) => void }) {
  return (
    <fieldset className="checks lines"><legend>Roles</legend>
      {(Object.keys(ROLES) as AccountRole[]).map((role) => (
        <label key={role}><input type="checkbox" disabled={props.disabled} checked={props.roles.includes(role)}
          onChange={(event) => props.onChange(event.target.checked ? [...props.roles, role] : props.roles.filter((one) => one !== role))} /> {role}: {ROLES[role]}</label>
      ))}
    </fieldset>
  );
}

function NewUser(props: { done: (name: string, link: string) => void }) {
  const { change } = useSession();
  const [name, setName] = useState("");
  const [roles, setRoles] = useState<AccountRole[]>(["analyst"]);
  const id = useId();
  return (
    <Panel title="Add a user">
      <form onSubmit={(event) => {
        event.preventDefault();
        void change(() => send("post", "/api/v1/users", { name, roles })).then((made) => { if (made) { props.done(name, String(made.link)); setName(""); } });
      }}>
        <div className="field"><label htmlFor={id}>Name</label><input id={id} value={name} autoComplete="off" onChange={(event) => setName(event.target.value)} /><small className="muted">Small letters, digits, dot, hyphen.</small></div>
        <RoleChoice roles={roles} onChange={setRoles} />
        <button type="submit" className="primary" disabled={!name || roles.length === 0}>Add and make a one-time link</button>
      </form>
    </Panel>
  );
}

function OneUser(props: { user: User; changed: () => void; linked: (link: string) => void }) {
  const { me, is, change } = useSession();
  const { user } = props;
  const names = { name: user.name };
  const tokens = useLoaded(() => read<{ tokens: Token[] }>("/api/v1/users/{name}/tokens", names), [user.name]);
  const admin = is("administrator"), own = user.name === me.name;
  const patch = (body: { roles?: AccountRole[]; active?: boolean }) => void change(() => send("patch", "/api/v1/users/{name}", body, names)).then(props.changed);
  return (
    <Panel title={`Account ${user.name}`}>
      {own && <Notice kind="open">Nobody changes their own roles. Ask another administrator.</Notice>}
      <RoleChoice roles={user.roles as AccountRole[]} disabled={!admin || own} onChange={(roles) => { if (roles.length) patch({ roles }); }} />
      {admin && (
        <div className="row">
          <button type="button" onClick={() => void change(() => send("post", "/api/v1/users/{name}/link", undefined, names)).then((made) => { if (made) props.linked(String(made.link)); })}>Make a one-time link</button>
          {!own && <button type="button" onClick={() => patch({ active: !user.active })}>{user.active ? "Deactivate" : "Activate"} {user.name}</button>}
        </div>
      )}
      <h3>Tokens</h3>
      <ErrorNotice error={tokens.error} />
      <Tokens tokens={tokens.value?.tokens ?? []} may={["ask", "read", "manage"]} changed={tokens.again}
        revoke={admin ? (identifier) => change(() => send("delete", "/api/v1/tokens/{identifier}", undefined, { identifier })) : undefined} />
    </Panel>
  );
}

function Groups(props: { users: User[]; changed: () => void }) {
  const { is, change } = useSession();
  const groups = useLoaded(() => read<{ groups: Record<string, string[]> }>("/api/v1/groups"), []);
  const [name, setName] = useState("");
  const id = useId();
  const admin = is("administrator");
  const done = () => { groups.again(); props.changed(); };
  const entries = Object.entries(groups.value?.groups ?? {});
  return (
    <Panel title="Groups">
      <p className="muted">A group may have access and a budget that its members share.</p>
      <ErrorNotice error={groups.error} />
      {entries.length === 0 && <p>There is no group.</p>}
      {entries.map(([group, members]) => (
        <div key={group} className="part">
          <strong>@{group}</strong>
          <ul>{members.map((user) => <li key={user}>{user} {admin && <button type="button" className="quiet" onClick={() => void change(() => send("delete", "/api/v1/groups/{name}/members/{user}", undefined, { name: group, user })).then(done)}>Remove {user}</button>}</li>)}</ul>
          {admin && (
            <select aria-label={`Add a member to ${group}`} value="" onChange={(event) => void change(() => send("put", "/api/v1/groups/{name}/members/{user}", undefined, { name: group, user: event.target.value })).then(done)}>
              <option value="">add a member</option>
              {props.users.filter((user) => !members.includes(user.name)).map((user) => <option key={user.name}>{user.name}</option>)}
            </select>
          )}
        </div>
      ))}
      {admin && (
        <form className="row" onSubmit={(event) => { event.preventDefault(); void change(() => send("post", "/api/v1/groups", { name })).then((made) => { if (made) { setName(""); done(); } }); }}>
          <label htmlFor={id}>New group</label><input id={id} value={name} onChange={(event) => setName(event.target.value)} /><button type="submit" disabled={!name}>Add</button>
        </form>
      )}
    </Panel>
  );
}
