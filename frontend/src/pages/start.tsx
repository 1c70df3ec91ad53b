/** Start: choose a file on this machine, or open the demonstration hospital. */
import { useId, useState } from "react";
import { post } from "../api";
import { useLoaded, useStore } from "../store";
import { ErrorNotice, Notice, Page, Panel, count, follow, go } from "../ui";

export function StartPage() {
  const { state, fail, refresh } = useStore();
  const [folder, setFolder] = useState(".");
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [missed, setMissed] = useState<string | null>(null);
  const id = useId();
  const list = useLoaded(() => post("/api/data/files", { path: folder }), [folder]);
  const open = (path: string) => {
    setBusy(true);
    post("/api/data/open", { path }).then(refresh).then(() => go("/data"), fail).finally(() => setBusy(false));
  };
  // A dropped file is opened where it lies; its content is not sent.
  const dropped = (file: File | undefined) => {
    const found = list.value?.entries.find((entry) => !entry.folder && entry.name === file?.name && entry.size === file.size);
    setMissed(found ? null : (file?.name ?? null));
    if (found) open(found.path);
  };
  const demo = (tour: boolean) => {
    setBusy(true);
    post("/api/data/demo", undefined).then(refresh).then(() => {
      if (tour) window.history.replaceState(null, "", "/start#tour=0");
      go("/data");
    }, fail).finally(() => setBusy(false));
  };
  return (
    <Page title="Choose a file" lead="Files are read where they lie. Nothing is copied and nothing leaves this machine."
      actions={state.project ? <a className="button" href="/data" onClick={follow}>Back to {state.project}</a> : undefined}>
      <div className="columns">
        <Panel title="Files">
          <div className={`drop ${over ? "over" : ""}`} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
            onDrop={(event) => { event.preventDefault(); setOver(false); dropped(event.dataTransfer.files[0]); }}>Drop a file of this folder here, choose it below, or type its path.</div>
          {missed && <Notice kind="open">A browser does not tell where {missed} lies, and it is not in the folder shown. Choose its folder below, or type its path.</Notice>}
          <form className="row" onSubmit={(event) => { event.preventDefault(); if (typed.trim()) open(typed.trim()); }}>
            <label htmlFor={id}>File, database address or recipe</label>
            <input id={id} className="grow" value={typed} onChange={(e) => setTyped(e.target.value)}
              placeholder="/data/people.csv or postgresql://…?table=people" />
            <button type="submit" className="primary" disabled={busy || !typed.trim()}>Open</button>
          </form>
          <ErrorNotice error={list.error} />
          {list.value && (
            <>
              <p className="muted small">{list.value.folder}</p>
              <ul className="files" aria-label="Files in this folder">
                {list.value.parent && <li><button type="button" className="quiet" onClick={() => setFolder(list.value!.parent!)}>↑ parent folder</button></li>}
                {list.value.entries.map((entry) => (
                  <li key={entry.path}>
                    <button type="button" className="quiet" disabled={busy}
                      onClick={() => (entry.folder ? setFolder(entry.path) : open(entry.path))}>
                      {entry.folder ? "▸ " : ""}{entry.name}{entry.folder ? "/" : ""}
                    </button>
                    {entry.size !== null && entry.size !== undefined && <span className="muted small">{count(Math.ceil(entry.size / 1024))} kB</span>}
                  </li>
                ))}
              </ul>
              {list.value.entries.length === 0 && <p className="muted">No data files here. CSV, Excel, Parquet, SPSS, Stata and SAS files are shown.</p>}
            </>
          )}
        </Panel>
        <Panel title="Demonstration and tour">
          <p>A hospital file of 2,000 synthetic patients. In five minutes you
            decide which columns identify people, protect them, and attack your own release.</p>
          <div className="row">
            <button type="button" className="primary" disabled={busy} onClick={() => demo(true)}>Start the tour</button>
            <button type="button" disabled={busy} onClick={() => demo(false)}>Open the demonstration hospital</button>
          </div>
          <ol className="tour">
            <li><strong>Data:</strong> look at the columns and correct how they are read.</li>
            <li><strong>Roles:</strong> decide what outsiders know and what must stay secret.</li>
            <li><strong>Protect:</strong> choose a preset and run it.</li>
            <li><strong>Attack:</strong> read what an attacker gets from the result.</li>
            <li><strong>Report:</strong> hand over the release with its report.</li>
          </ol>
        </Panel>
      </div>
    </Page>
  );
}

