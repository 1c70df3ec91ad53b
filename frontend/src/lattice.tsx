/** The lattice of generalization: all combinations of levels, which of them meet the models, and what each loses. */
import { useMemo, useState } from "react";
import { get, post } from "./api";
import { keyOf, neighbour, rowsOf } from "./lattice-model";
import type { Lattice } from "./lattice-model";
import { useLoaded, useStore } from "./store";
import { ErrorNotice, JobView, Notice, Panel, StateMark, count, percent } from "./ui";

/** Above this number the combinations are not drawn; the table of levels still leads through all of them. */
const DRAWN = 600;

export function LatticePanel() {
  const { job, recipe, fail, refresh, setSection } = useStore();
  const running = job("lattice")?.state === "running";
  const loaded = useLoaded(() => get("/api/lattice"), [running, recipe?.version]);
  const lattice = (loaded.value?.lattice ?? null) as Lattice | null;
  const stale = loaded.value?.stale === true;
  const steps = Array.isArray(recipe?.document.steps) ? (recipe.document.steps as unknown[]) : [];
  const place = steps.findIndex((step) => step === "generalize" || (typeof step === "object" && step !== null && "generalize" in step));
  if (place < 0) return null;
  const step = steps[place];
  const settings = (typeof step === "object" && step !== null ? (step as { generalize: Record<string, unknown> | null }).generalize : null) ?? {};
  const fixed = settings.lowest !== undefined || settings.highest !== undefined;
  const put = (levels: Record<string, number> | null) => {
    const { lowest: _lowest, highest: _highest, ...rest } = settings;
    const next = levels ? { ...rest, lowest: levels, highest: levels } : rest;
    const changed = Object.keys(next).length ? { generalize: next } : "generalize";
    void setSection("steps", steps.map((old, n) => (n === place ? changed : old)));
  };
  return (
    <Panel title="Lattice of levels">
      <p className="muted">Generalization chooses one level of each hierarchy. This evaluates every combination, so that you can look at the alternatives and take one.</p>
      <div className="row">
        <button type="button" disabled={running || (recipe?.problems.length ?? 0) > 0} onClick={() => { post("/api/jobs", { kind: "lattice", seconds: 600, targets: 1, candidates: [] }).then(refresh, fail); }}>Evaluate all combinations</button>
        {fixed && <button type="button" onClick={() => put(null)}>Let the search choose again</button>}
      </div>
      {fixed && <Notice kind="open">The recipe fixes or limits the levels of this step.</Notice>}
      <JobView job={job("lattice")} title="Evaluating combinations of levels" />
      <ErrorNotice error={loaded.error} />
      {lattice && stale && <Notice kind="open">The data, columns, models or steps have changed since these combinations were evaluated.</Notice>}
      {lattice && !running && <Explorer lattice={lattice} take={(levels) => put(Object.fromEntries(lattice.columns.map((name, n) => [name, levels[n] ?? 0])))} />}
    </Panel>
  );
}

function Explorer(props: { lattice: Lattice; take: (levels: number[]) => void }) {
  const { lattice } = props;
  const nodes = useMemo(() => new Map(lattice.nodes.map((node) => [keyOf(node.levels), node])), [lattice]);
  const [chosen, setChosen] = useState<number[] | null>(null);
  const here = chosen && nodes.has(keyOf(chosen)) ? chosen : (lattice.best ?? lattice.high);
  const node = nodes.get(keyOf(here));
  const meeting = lattice.nodes.filter((one) => one.meets).length;
  const word = (column: number, level: number) => lattice.words[lattice.columns[column] ?? ""]?.[level] ?? `level ${level}`;
  const move = (column: number, step: 1 | -1) => {
    const next = neighbour(lattice, here, column, step);
    const found = next && nodes.get(keyOf(next));
    if (!next || !found) return <span className="muted">–</span>;
    return (
      <button type="button" onClick={() => setChosen(next)} aria-label={`${lattice.columns[column]}: ${word(column, next[column] ?? 0)}, ${found.meets ? "holds" : "fails"}`}>
        {word(column, next[column] ?? 0)} <StateMark state={found.meets ? "holds" : "fails"} />
      </button>
    );
  };
  return (
    <>
      <p aria-live="polite">{count(meeting)} of {count(lattice.nodes.length)} combinations meet the models.{lattice.best ? "" : " Allow more suppression, or relax a model."}</p>
      {lattice.nodes.length <= DRAWN
        ? <Picture lattice={lattice} here={here} choose={setChosen} />
        : <p className="muted">The picture is left out: there are more than {DRAWN} combinations.</p>}
      <div className="scroll" tabIndex={0} role="region" aria-label="Levels">
        <table className="list">
          <thead><tr><th scope="col">Column</th><th scope="col">More detail</th><th scope="col">Chosen</th><th scope="col">Less detail</th></tr></thead>
          <tbody>{lattice.columns.map((name, column) => (
            <tr key={name}><th scope="row">{name}</th><td>{move(column, -1)}</td><td><strong>{word(column, here[column] ?? 0)}</strong></td><td>{move(column, 1)}</td></tr>
          ))}</tbody>
        </table>
      </div>
      <p>
        <StateMark state={node?.meets ? "holds" : "fails"} />{" "}
        {node?.meets
          ? `Loss ${node.loss?.toPrecision(4) ?? "–"}. ${count(node.suppressed)} rows suppressed (${percent((node.suppressed ?? 0) / Math.max(lattice.rows, 1))}), ${count(node.classes)} equivalence classes, the smallest of ${count(node.smallest)} rows.`
          : "The models do not hold with these levels, or too many rows would be suppressed."}
      </p>
      <div className="row">
        <button type="button" className="primary" disabled={!node?.meets} onClick={() => props.take(here)}>Take these levels</button>
        {lattice.best && <button type="button" onClick={() => setChosen(null)}>Back to the least loss</button>}
      </div>
    </>
  );
}

function Picture(props: { lattice: Lattice; here: number[]; choose: (levels: number[]) => void }) {
  const { lattice, here } = props;
  const rows = useMemo(() => rowsOf(lattice.nodes), [lattice]);
  const widest = Math.max(...rows.map((row) => row.length));
  const gap = Math.min(28, 620 / widest);
  const size = Math.max(2.5, Math.min(8, gap / 2.8));
  const places = new Map(rows.flatMap((row, y) => row.map((node, x) => [keyOf(node.levels), { x: 320 + (x - (row.length - 1) / 2) * gap, y: 16 + y * 26 }] as const)));
  const own = places.get(keyOf(here));
  const near = lattice.columns.flatMap((_, column) => ([1, -1] as const).map((step) => neighbour(lattice, here, column, step))).filter((one) => one !== undefined);
  return (
    <figure>
      <svg className="map lattice" viewBox={`0 0 640 ${rows.length * 26 + 12}`} role="img" aria-label="Combinations of levels, the most general on top; filled ones meet the models. The table below leads through them.">
        {own && near.map((levels) => { const other = places.get(keyOf(levels)); return other && <line key={keyOf(levels)} x1={own.x} y1={own.y} x2={other.x} y2={other.y} />; })}
        {lattice.nodes.map((node) => {
          const at = places.get(keyOf(node.levels));
          const key = keyOf(node.levels);
          const kinds = [node.meets ? "meets" : "fails", key === keyOf(here) ? "here" : "", lattice.best && key === keyOf(lattice.best) ? "best" : ""].join(" ");
          return at && <circle key={key} className={kinds} cx={at.x} cy={at.y} r={key === keyOf(here) ? size + 2 : size} onClick={() => props.choose(node.levels)}><title>{`${lattice.columns.map((name, n) => `${name} ${node.levels[n]}`).join(", ")}: ${node.meets ? "holds" : "fails"}`}</title></circle>;
        })}
      </svg>
      <figcaption className="small muted">Top: most general. Filled: meets the models. Ring: least loss. Lines lead to the combinations one level away from the chosen one.</figcaption>
    </figure>
  );
}
