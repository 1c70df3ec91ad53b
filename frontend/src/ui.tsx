/** Small building blocks of the pages. */
import { useEffect, useId, useState } from "react";
import type { ReactNode } from "react";
import { cancelJob, ticketed } from "./api";
import type { JobStatus } from "./api";
import { t } from "./messages";
import { useStore } from "./store";
import type { Shown } from "./store";

export function Page(props: { title: string; lead: ReactNode; children: ReactNode; actions?: ReactNode }) {
  return (
    <>
      <header className="page-head">
        <h1>{props.title}</h1>
        <div className="actions">{props.actions}</div>
        <p className="lead">{props.lead}</p>
      </header>
      {props.children}
    </>
  );
}

export function Panel(props: { title?: string; children: ReactNode; className?: string; aside?: ReactNode }) {
  const id = useId();
  return (
    <section className={`panel ${props.className ?? ""}`} data-panel={props.title} aria-labelledby={props.title ? id : undefined}>
      {props.title && <div className="panel-head"><h2 id={id}>{props.title}</h2>{props.aside}</div>}
      {props.children}
    </section>
  );
}

export function Notice(props: { kind: "good" | "bad" | "open"; children: ReactNode }) {
  return <div className={`notice ${props.kind}`}>{props.children}</div>;
}

/** A button that opens a page of the service in a new tab, or ``here`` what is downloaded. */
export function OpenPage(props: { path: string; here?: boolean; children: ReactNode }) {
  const { fail } = useStore();
  const open = () => {
    const tab = props.here ? window : window.open("about:blank");
    ticketed(props.path).then((address) => tab?.location.assign(address), (cause: unknown) => { if (!props.here) tab?.close(); fail(cause); });
  };
  return <button type="button" onClick={open}>{props.children}</button>;
}

/** A text of the service: what stands between backticks is code. */
export function Prose(props: { of: string }) {
  const parts = props.of.split(/(``[^`]+``|`[^`\n]+`)/);
  return <>{parts.map((part, n) => n % 2 ? <code key={n}>{part.replaceAll("`", "")}</code> : part)}</>;
}

export function ErrorNotice(props: { error: Shown | null }) {
  if (!props.error) return null;
  return (
    <Notice kind="bad">
      <strong><Prose of={props.error.message.split("\n")[0] ?? ""} /></strong>
      {props.error.lines.length > 0 && <ul>{props.error.lines.map((line) => <li key={line}><Prose of={line} /></li>)}</ul>}
      {props.error.fix && <p className="pre"><Prose of={props.error.fix} /></p>}
    </Notice>
  );
}

export function Empty(props: { children: ReactNode; to?: string; action?: string }) {
  return (
    <div className="empty">
      <p>{props.children}</p>
      {props.to && <a className="button" href={props.to} onClick={follow}>{props.action}</a>}
    </div>
  );
}

/** Goes to a page of the app without loading it again. */
export function go(path: string): void {
  window.history.pushState(null, "", `${path}${window.location.hash}`);
  window.dispatchEvent(new PopStateEvent("popstate"));
}

/** Follows a link inside the app without loading the page again. */
export function follow(event: React.MouseEvent<HTMLAnchorElement>): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(event.currentTarget.getAttribute("href") ?? "/");
}

/** The path of the page, which changes without loading. */
export function usePath(): string {
  const [address, setAddress] = useState(window.location.pathname + window.location.hash);
  useEffect(() => {
    const moved = () => setAddress(window.location.pathname + window.location.hash);
    window.addEventListener("popstate", moved);
    return () => window.removeEventListener("popstate", moved);
  }, []);
  return address.split("#")[0]!;
}

export const ROLES: Record<string, string> = {
  undecided: "nobody has decided; a run refuses it",
  identifier: "identifies a person by itself; removed",
  quasi: "known to outsiders; masked",
  sensitive: "must stay secret; protected by the models",
  plain: "leaves unchanged; needs a reason",
  drop: "not released",
  weight: "sampling weight",
  household: "identifies a household",
};

export function Role(props: { role: string }) {
  return <span className={`role role-${props.role}`}>{props.role}</span>;
}

const STATES: Record<string, string> = {
  holds: "good", met: "good", shown: "good", complete: "good", done: "good", active: "good", valid: "good", approved: "good", decided: "good", signed: "good", rejected: "bad", revoked: "bad", fails: "bad", refused: "bad", failed: "bad", exceeded: "bad", "not met": "bad",
};

export function StateMark(props: { state: string }) {
  const kind = STATES[props.state] ?? "open";
  const sign = kind === "good" ? "✓" : kind === "bad" ? "✗" : "○";
  return <span className={`mark ${kind}`}><span aria-hidden="true">{sign} </span>{props.state}</span>;
}

export function percent(value: number | null | undefined, digits = 1): string {
  if (value === null || value === undefined) return "–";
  const text = (value * 100).toFixed(value > 0 && value < 0.001 ? 2 : digits);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text}%`;
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

/** A decision with which a release would be met: new roles, whose the rows are, another k, or to accept attackers. */
export interface Way { does: string; roles: Record<string, string>; unit: string | null; accepts: boolean; k: number | null }

/** Decisions with which work that was refused would succeed. */
export function waysOf(job: JobStatus | undefined): Way[] {
  const error = job?.state === "failed" ? job.error as unknown as { ways?: Way[] } | null : null;
  return error?.ways ?? [];
}

/** A running or ended job: how far it is, cancel, and why it failed. */
export function JobView(props: { job: JobStatus | undefined; title: string }) {
  const { refresh, fail } = useStore();
  const { job } = props;
  if (!job) return null;
  if (job.state === "running") {
    const open = job.progress.map((task) => task as { title: string; done: number; total: number | null });
    const outer = open[0];
    return (
      <div className="job" role="status" aria-live="polite">
        <div className="job-line">
          <strong>{props.title}</strong>
          <span>{Math.round(job.seconds)} s</span>
          <button type="button" onClick={() => { cancelJob(job.number).then(refresh, fail); }}>{t("Cancel")}</button>
        </div>
        <progress aria-label={props.title} value={outer?.total ? outer.done / outer.total : undefined} max={1} />
        <p className="muted">
          {open.length === 0 ? "starting" : open.map((task) =>
            task.total ? `${task.title} ${Math.round(100 * Math.min(1, task.done / task.total))}%` : task.title).join(" › ")}
        </p>
      </div>
    );
  }
  if (job.state === "failed" && job.error) {
    const error = job.error as unknown as { message: string; fix: string };
    // Where there are choices, the page shows them as buttons.
    return <ErrorNotice error={{ message: error.message, fix: waysOf(job).length ? "" : error.fix, lines: error.message.split("\n").slice(1) }} />;
  }
  if (job.state !== "done") return <Notice kind="open">{props.title}: {job.state} after {Math.round(job.seconds)} s.</Notice>;
  return null;
}

/** Horizontal bars with their labels and values as text. */
export function Bars(props: { rows: [string, number][]; label: string; most?: number }) {
  const most = props.most ?? Math.max(...props.rows.map(([, value]) => value), 1e-9);
  return (
    <table className="bars">
      <caption>{props.label}</caption>
      <tbody>
        {props.rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={100 * value / most} height="10" /></svg></td>
            <td className="number">{percent(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function TextInput(props: { label: string; value: string; onCommit: (value: string) => void; type?: string; hint?: string; hidden?: boolean }) {
  const id = useId();
  const [draft, setDraft] = useState<string | null>(null);
  const commit = () => { if (draft !== null && draft !== props.value) props.onCommit(draft); setDraft(null); };
  return (
    <div className="field">
      <label htmlFor={id} className={props.hidden ? "visually-hidden" : ""}>{props.label}</label>
      <input id={id} type={props.type ?? "text"} value={draft ?? props.value} onChange={(e) => setDraft(e.target.value)}
        onBlur={commit} onKeyDown={(e) => { if (e.key === "Enter") commit(); }} />
      {props.hint && <small className="muted">{props.hint}</small>}
    </div>
  );
}
