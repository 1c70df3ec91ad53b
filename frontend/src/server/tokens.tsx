/** The tokens of an account: listed, made, revoked. A new secret is shown once. */
import { useId, useState } from "react";
import { Notice, StateMark } from "../ui";
import { when } from "./api";
import type { Token } from "./api";
import type { components } from "./schema";

type Body = components["schemas"]["TokenBody"];
const SCOPES: Record<Body["scopes"][number], string> = { ask: "explain and ask questions", read: "read accounts, budgets and the ledger", manage: "change accounts, data sets and budgets" };

export function Tokens(props: {
  tokens: Token[]; may: string[]; changed: () => void;
  make?: (body: Body) => Promise<Record<string, unknown> | undefined>;
  revoke?: (identifier: string) => Promise<unknown>;
}) {
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      {secret && <Notice kind="good"><p>The token is shown once. Copy it now:</p><code className="secret">{secret}</code> <button type="button" onClick={() => setSecret(null)}>I have copied it</button></Notice>}
      {props.tokens.length === 0 ? <p className="muted">There is no token.</p> : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Tokens"><table className="list">
          <thead><tr><th scope="col">Token</th><th scope="col">May</th><th scope="col">Expires</th><th scope="col">Last used</th><th scope="col">State</th></tr></thead>
          <tbody>{props.tokens.map((token) => {
            const ended = token.revoked ? "revoked" : new Date(token.expires) < new Date() ? "expired" : "";
            return (
              <tr key={token.id}>
                <th scope="row">{token.label || "without a label"} <small className="muted block">{token.id}</small></th><td>{token.scopes.join(", ")}</td><td>{when(token.expires)}</td><td>{when(token.last_used)}</td>
                <td>{ended ? <StateMark state={ended} /> : props.revoke ? <button type="button" onClick={() => void props.revoke!(token.id).then(props.changed)}>Revoke</button> : <StateMark state="valid" />}</td>
              </tr>
            );
          })}</tbody>
        </table></div>
      )}
      {props.make && <NewToken may={props.may} make={(body) => { void props.make!(body).then((made) => { if (made) { setSecret(String(made.secret)); props.changed(); } }); }} />}
    </>
  );
}

function NewToken(props: { may: string[]; make: (body: Body) => void }) {
  const [label, setLabel] = useState("");
  const [days, setDays] = useState("90");
  const [scopes, setScopes] = useState<Body["scopes"]>(["ask"]);
  const ids = [useId(), useId()];
  return (
    <form onSubmit={(event) => { event.preventDefault(); props.make({ label, days: Number(days), scopes }); }}>
      <h3>New token</h3>
      <div className="row">
        <label htmlFor={ids[0]}>For</label><input id={ids[0]} value={label} onChange={(event) => setLabel(event.target.value)} placeholder="notebook on my laptop" />
        <label htmlFor={ids[1]}>Days</label><input id={ids[1]} type="number" min="1" max="366" value={days} onChange={(event) => setDays(event.target.value)} />
      </div>
      <fieldset className="checks lines"><legend>It may</legend>
        {(Object.keys(SCOPES) as Body["scopes"]).filter((scope) => props.may.includes(scope)).map((scope) => (
          <label key={scope}><input type="checkbox" checked={scopes.includes(scope)} onChange={(event) => setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))} /> {scope}: {SCOPES[scope]}</label>
        ))}
      </fieldset>
      <button type="submit" disabled={scopes.length === 0 || !(Number(days) > 0)}>Make a token</button>
    </form>
  );
}
