/** Sign in: by a one-time link, a password, a provider or an API token. */
import { useEffect, useId, useState } from "react";
import { request, setBearer } from "../http";
import { shownError } from "../store";
import type { Shown } from "../store";
import { ErrorNotice, Panel } from "../ui";
import { read, send } from "./api";

export function SignInPage(props: { signedIn: () => Promise<void> }) {
  const [link, setLink] = useState(window.location.pathname.startsWith("/sign-in/"));
  const [error, setError] = useState<Shown | null>(null);
  useEffect(() => { document.title = "Sign in · sfumato"; }, []);
  const attempt = (action: () => Promise<unknown>) => {
    setError(null);
    action().then(props.signedIn).catch((cause: unknown) => setError(shownError(cause)));
  };
  const leave = (to: string) => {
    window.history.replaceState(null, "", to);
    window.dispatchEvent(new PopStateEvent("popstate"));
  };
  return (
    <main className="outside">
      <h1>sfumato</h1>
      <ErrorNotice error={error} />
      {link ? (
        <Panel title="Sign in with a one-time link">
          <p>The link works once. Set a password on the Account page afterwards.</p>
          <div className="row">
            <button type="button" className="primary" onClick={() => attempt(async () => {
              await request("POST", window.location.pathname);
              leave("/account");
            })}>Sign in to sfumato</button>
            <button type="button" onClick={() => { setLink(false); leave("/"); }}>Sign in another way</button>
          </div>
        </Panel>
      ) : <Ways attempt={attempt} />}
    </main>
  );
}

function Ways(props: { attempt: (action: () => Promise<unknown>) => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [token, setToken] = useState("");
  const [oidc, setOidc] = useState(false);
  const ids = [useId(), useId(), useId()];
  useEffect(() => { read<{ oidc: boolean }>("/api/v1/sign-in").then((found) => setOidc(found.oidc), () => undefined); }, []);
  return (
    <>
      {oidc && <Panel title="Your organization"><a className="button primary" href="/oidc/start">Sign in at your provider</a></Panel>}
      <Panel title="Password">
        <form onSubmit={(event) => { event.preventDefault(); props.attempt(() => send("post", "/api/v1/sign-in", { user: name, password })); }}>
          <div className="field"><label htmlFor={ids[0]}>User</label><input id={ids[0]} autoComplete="username" value={name} onChange={(event) => setName(event.target.value)} /></div>
          <div className="field"><label htmlFor={ids[1]}>Password</label><input id={ids[1]} type="password" autoComplete="current-password" value={password} onChange={(event) => setPassword(event.target.value)} /></div>
          <button type="submit" className="primary" disabled={!name || !password}>Sign in</button>
        </form>
        <p className="muted small">New here, or forgot the password? Ask an administrator for a one-time link.</p>
      </Panel>
      <Panel title="API token">
        <form onSubmit={(event) => { event.preventDefault(); setBearer(token.trim()); props.attempt(() => read("/api/v1/me").catch((cause: unknown) => { setBearer(""); throw cause; })); }}>
          <div className="field"><label htmlFor={ids[2]}>Token</label><input id={ids[2]} type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} /></div>
          <button type="submit" disabled={!token.trim()}>Sign in with the token</button>
        </form>
        <p className="muted small">The token is kept in this tab only. A reload signs out.</p>
      </Panel>
    </>
  );
}
