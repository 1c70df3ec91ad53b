/** The frame of the server's pages: sign-in, navigation by role, messages. */
import { useCallback, useEffect, useMemo, useState } from "react";
import type { ComponentType } from "react";
import { Refusal, setBearer, setCsrf } from "../http";
import { t } from "../messages";
import { shownError } from "../store";
import type { Shown } from "../store";
import { ErrorNotice, Notice, follow, usePath } from "../ui";
import { AccountPage } from "./account";
import { read, send, when } from "./api";
import type { Me } from "./api";
import { AskPage } from "./ask";
import { BudgetsPage } from "./budgets";
import { DatasetsPage } from "./datasets";
import { LedgerPage } from "./ledger";
import { QuestionsPage } from "./questions";
import { SessionContext, useSession } from "./session";
import type { Session } from "./session";
import { SignInPage } from "./sign-in";
import { UsersPage } from "./users";

interface Entry { path: string; title: string; page: ComponentType; roles: string[] }

const ALL = ["analyst", "owner", "auditor", "administrator"];
const PAGES: Entry[] = [
  { path: "/ask", title: "Ask", page: AskPage, roles: ["analyst"] },
  { path: "/questions", title: "Questions", page: QuestionsPage, roles: ["analyst", "owner", "auditor"] },
  { path: "/datasets", title: "Data sets", page: DatasetsPage, roles: ["owner", "auditor"] },
  { path: "/budgets", title: "Budgets", page: BudgetsPage, roles: ALL },
  { path: "/users", title: "Users", page: UsersPage, roles: ["administrator", "owner", "auditor"] },
  { path: "/ledger", title: "Ledger", page: LedgerPage, roles: ["owner", "auditor"] },
  { path: "/account", title: "Account", page: AccountPage, roles: ALL },
];

export function ServerApp() {
  const [me, setMe] = useState<Me | null | "unknown">("unknown");
  const [away, setAway] = useState<Shown | null>(null);
  const [error, setError] = useState<Shown | null>(null);
  const path = usePath();
  const load = useCallback(async () => {
    try {
      const found = await read<Me>("/api/v1/me");
      setCsrf(found.csrf ?? "");
      setMe(found);
      setAway(null);
    } catch (cause) {
      if (cause instanceof Refusal && cause.status === 401) setMe(null);
      else setAway(shownError(cause));
    }
  }, []);
  useEffect(() => { void load(); }, [load]);
  const session = useMemo<Session | null>(() => me === null || me === "unknown" ? null : {
    me,
    is: (...roles) => roles.some((role) => me.roles.includes(role)),
    change: async (action) => {
      try {
        setError(null);
        return ((await action()) ?? {}) as Record<string, unknown>;
      } catch (cause) {
        if (cause instanceof Refusal && cause.status === 401) setMe(null);
        setError(shownError(cause));
        return undefined;
      }
    },
    signOut: () => {
      const done = () => { setBearer(""); setCsrf(""); setMe(null); };
      send("post", "/api/v1/sign-out", undefined).then(done, done);
    },
  }, [me]);
  if (me === "unknown") return away ? <main className="outside"><h1>sfumato</h1><ErrorNotice error={away} /></main> : null;
  if (session === null || path.startsWith("/sign-in/")) return <SignInPage signedIn={load} />;
  return (
    <SessionContext.Provider value={session}>
      <Frame path={path} />
      {error && <div className="toast" role="alert"><ErrorNotice error={error} /><button type="button" onClick={() => setError(null)}>Close</button></div>}
    </SessionContext.Provider>
  );
}

function Frame(props: { path: string }) {
  const session = useSession();
  const pages = PAGES.filter((entry) => session.is(...entry.roles));
  const shown = pages.find((entry) => entry.path === props.path) ?? pages[0]!;
  useEffect(() => { document.title = `${t(shown.title)} · sfumato`; }, [shown.title]);
  const Shown = shown.page;
  return (
    <div className="frame">
      <a className="skip" href="#main">Skip to the content</a>
      <header className="top">
        <a className="brand" href="/" onClick={follow}>sfumato</a>
        <span className="project">{session.me.name} <small className="muted">{session.me.roles.join(", ")}</small></span>
        <div className="tools"><button type="button" onClick={session.signOut}>Sign out</button></div>
      </header>
      <nav aria-label="Pages"><ol>
        {pages.map((entry) => <li key={entry.path}><a href={entry.path} onClick={follow} aria-current={entry === shown ? "page" : undefined}>{t(entry.title)}</a></li>)}
      </ol></nav>
      <main id="main" tabIndex={-1}>
        {session.me.reset && <Notice kind="open">{session.me.reset.by} gave you a sign-in link or a token on {when(session.me.reset.at)}. If you did not ask for it, somebody may have acted in your name: tell an auditor. You cannot approve requests for a day.</Notice>}
        <Shown />
      </main>
    </div>
  );
}
