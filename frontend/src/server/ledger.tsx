/** Ledger: its entries, and the check of every hash and total. */
import { useState } from "react";
import { useLoaded } from "../store";
import { ErrorNotice, Notice, Page, Panel, count } from "../ui";
import { read, when } from "./api";
import type { Entry } from "./api";
import { useSession } from "./session";

const STEP = 200;

export function LedgerPage() {
  const { change, is } = useSession();
  const [verified, setVerified] = useState<string | null>(null);
  const [after, setAfter] = useState(0);
  const loaded = useLoaded(() => read<{ entries: Entry[] }>("/api/v1/ledger", {}, `?after=${after}&most=${STEP}`), [after]);
  const entries = loaded.value?.entries ?? [];
  return (
    <Page title="Ledger" lead="Charges, caps and changes of accounts, in order. Each entry has the hash of the one before it, so that a change of an earlier one is noticed."
      actions={<button type="button" className="primary" onClick={() => { setVerified(null); void change(() => read<{ last: string }>("/api/v1/ledger/verify")).then((found) => { if (found) setVerified(String(found.last)); }); }}>Verify the ledger</button>}>
      {verified && <Notice kind="good"><p>Every hash, number and running total is right. The last hash is:</p><code className="hash">{verified}</code><p className="small">Keep it elsewhere: it shows later that no entry was removed.</p></Notice>}
      <Panel title={is("auditor") ? "Entries" : "Entries of your data sets"} aside={
        <span className="row">
          <button type="button" disabled={after === 0} onClick={() => setAfter(0)}>First</button>
          <button type="button" disabled={entries.length < STEP} onClick={() => setAfter(entries.at(-1)!.number)}>Next {STEP}</button>
        </span>}>
        <ErrorNotice error={loaded.error} />
        {loaded.value && entries.length === 0 && <p className="muted">There is no entry.</p>}
        <div className="scroll tall" tabIndex={0} role="region" aria-label="Entries"><table className="list">
          <thead><tr><th scope="col" className="number">No.</th><th scope="col">When</th><th scope="col">Kind</th><th scope="col">Data set</th><th scope="col">Account</th><th scope="col">About</th><th scope="col">Hash</th></tr></thead>
          <tbody>{entries.map((entry) => (
            <tr key={entry.number}><th scope="row" className="number">{count(entry.number)}</th><td>{when(entry.at)}</td><td>{entry.kind}</td><td>{entry.dataset}</td><td>{entry.analyst}</td><td className="small values">{entry.about}</td><td><code className="hash" title={entry.hash}>{entry.hash.slice(0, 12)}…</code></td></tr>
          ))}</tbody>
        </table></div>
      </Panel>
    </Page>
  );
}
