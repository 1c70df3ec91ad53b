/** The tour: a card that leads over the pages and marks the part that it speaks about. The work itself is real. */
import { useEffect } from "react";
import { decisions, useStore } from "./store";
import type { Store } from "./store";
import { go } from "./ui";

interface Stop { path: string; panel: string; title: string; text: string; /** Whether the person has done it. */ done?: (store: Store) => boolean }

const decided = ({ recipe }: Store) => decisions(recipe) === "decided";
const chosen = ({ recipe }: Store) => Array.isArray(recipe?.document.steps) && recipe.document.limits !== undefined;

export const STOPS: Stop[] = [
  { path: "/data", panel: "Rows", title: "The file", text: "These are 2,000 synthetic patients. The app shows the rows where the file lies; nothing is copied." },
  { path: "/data", panel: "Columns", title: "What was understood", text: "Check the kind of each column. A code such as 99 for “no answer” is entered on the right." },
  { path: "/roles", panel: "Columns", title: "Decide the roles", text: "Names identify people and are removed. Date of birth, ZIP code and sex are known to outsiders: quasi-identifiers. The diagnosis is sensitive. Enter your name, set “admitted” to drop, and confirm the rest as proposed.", done: decided },
  { path: "/roles", panel: "What singles people out", title: "Why it matters", text: "Tick and untick columns: the share of people whom these columns describe alone changes at once." },
  { path: "/hierarchies", panel: "Quasi-identifiers", title: "How values become coarser", text: "Choose a column to see its levels on your data: a date becomes a month, a year, a decade." },
  { path: "/protect", panel: "Presets", title: "Choose a preset", text: "Use “research-file”. It sets what must hold, how the data is changed, and how much risk is acceptable.", done: chosen },
  { path: "/protect", panel: "Run", title: "Run the recipe", text: "It masks the data, attacks the result and measures what is lost. It takes about a minute, and you may leave the page.", done: ({ state }) => state.run != null },
  { path: "/compare", panel: "Columns", title: "Before and after", text: "See which columns lost what, and rows beside their originals further down." },
  { path: "/attack", panel: "In short", title: "What an attacker gets", text: "Every attack was run on your own release. If a limit is exceeded, “What to change” says how to repair it; change the recipe and run it again." },
  { path: "/report", panel: "Hand over", title: "Hand over", text: "Write the release to a folder, or download the package once everything is met. The report below is for you; the external one goes along with the data." },
];

export function Tour(props: { stop: number; set: (stop: number | null) => void }) {
  const store = useStore();
  const stop = STOPS[props.stop]!;
  const done = stop.done?.(store) ?? false;
  const path = window.location.pathname;
  useEffect(() => { if (window.location.pathname !== stop.path) go(stop.path); }, [stop]);
  useEffect(() => {
    let marked: Element | null = null;
    const timer = window.setInterval(() => {
      const found = document.querySelector(`[data-panel="${stop.panel}"]`);
      if (found === marked) return;
      marked?.classList.remove("tour-mark");
      marked = found;
      found?.classList.add("tour-mark");
      found?.scrollIntoView({ block: "nearest", behavior: "instant" });
    }, 200);
    return () => { window.clearInterval(timer); marked?.classList.remove("tour-mark"); };
  }, [stop, path]);
  const to = (number: number) => props.set(number >= STOPS.length ? null : number);
  return (
    <aside className="tour-card" role="region" aria-label="Tour" aria-live="polite">
      <p className="muted small">Tour, {props.stop + 1} of {STOPS.length}{done ? ": ✓ done" : ""}</p>
      <h2>{stop.title}</h2>
      <p>{stop.text}</p>
      {path !== stop.path && <p><button type="button" onClick={() => go(stop.path)}>Back to the stop</button></p>}
      <div className="row">
        <button type="button" disabled={props.stop === 0} onClick={() => to(props.stop - 1)}>Back</button>
        <button type="button" className="primary" onClick={() => to(props.stop + 1)}>{props.stop + 1 === STOPS.length ? "Finish" : "Next"}</button>
        <button type="button" className="quiet" onClick={() => props.set(null)}>End the tour</button>
      </div>
    </aside>
  );
}
