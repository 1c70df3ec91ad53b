/** Account: the password and the API tokens of the person who is signed in. */
import { useId, useState } from "react";
import { useLoaded } from "../store";
import { ErrorNotice, Notice, Page, Panel } from "../ui";
import { read, send } from "./api";
import type { Token } from "./api";
import { useSession } from "./session";
import { Tokens } from "./tokens";

export function AccountPage() {
  const { me, change } = useSession();
  const tokens = useLoaded(() => read<{ tokens: Token[] }>("/api/v1/me/tokens"), []);
  return (
    <Page title="Account" lead={<>Signed in as <strong>{me.name}</strong>: {me.roles.join(", ")}{me.groups.length > 0 && `; groups ${me.groups.join(", ")}`}.</>}>
      <div className="columns">
        <PasswordPanel />
        <Panel title="API tokens">
          <p className="muted">For programs and for the PostgreSQL endpoint, where the token is the password.</p>
          <ErrorNotice error={tokens.error} />
          <Tokens tokens={tokens.value?.tokens ?? []} may={me.scopes}
            make={(body) => change(() => send("post", "/api/v1/me/tokens", body))}
            revoke={(identifier) => change(() => send("delete", "/api/v1/me/tokens/{identifier}", undefined, { identifier }))} changed={tokens.again} />
        </Panel>
      </div>
    </Page>
  );
}

function PasswordPanel() {
  const { change, signOut, me } = useSession();
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [current, setCurrent] = useState("");
  const ids = [useId(), useId(), useId()];
  const differ = again !== "" && again !== password;
  return (
    <Panel title="Password">
      <form onSubmit={(event) => {
        event.preventDefault();
        void change(() => send("put", "/api/v1/me/password", { password, current })).then((done) => { if (done) signOut(); });
      }}>
        <input type="hidden" autoComplete="username" value={me.name} readOnly />
        <div className="field"><label htmlFor={ids[2]}>Present password (not needed after a one-time link)</label><input id={ids[2]} type="password" autoComplete="current-password" value={current} onChange={(event) => setCurrent(event.target.value)} /></div>
        <div className="field"><label htmlFor={ids[0]}>New password</label><input id={ids[0]} type="password" autoComplete="new-password" value={password} onChange={(event) => setPassword(event.target.value)} /></div>
        <div className="field"><label htmlFor={ids[1]}>Repeat it</label><input id={ids[1]} type="password" autoComplete="new-password" value={again} onChange={(event) => setAgain(event.target.value)} /></div>
        {differ && <Notice kind="bad">The two passwords differ.</Notice>}
        <button type="submit" className="primary" disabled={!password || password !== again}>Set the password</button>
        <p className="muted small">All browser sessions of the account end, also this one. Sign in with the new password.</p>
      </form>
    </Panel>
  );
}
