/** A list of parts in the recipe (models, steps, attacks, measures): shown, changed, moved, removed, added. */
import { useId, useState } from "react";
import { SchemaForm } from "./form";
import type { Forms } from "./form";
import { readPart, writePart } from "./form-model";
import { useStore } from "./store";
import { Panel, Prose } from "./ui";

export function PartList(props: { section: string; title: string; lead: string; forms: Forms; noun: string; none: string }) {
  const { recipe, setSection } = useStore();
  const { forms, section } = props;
  const parts = forms.parts[section] ?? [];
  const listed = recipe?.document[section];
  const entries = Array.isArray(listed) ? (listed as unknown[]) : [];
  const write = (next: unknown[]) => void setSection(section, next.length ? next : null);
  const [adding, setAdding] = useState<string>("");
  const [draft, setDraft] = useState<Record<string, unknown>>({});
  const id = useId();
  const chosen = parts.find((part) => part.name === adding);
  const schema = chosen ? forms.definitions[chosen.definition] : undefined;
  const missing = (schema?.required ?? []).filter((name) => draft[name] === undefined);
  return (
    <Panel title={props.title}>
      <p className="muted">{props.lead}</p>
      {entries.length === 0 && <p>{props.none}</p>}
      <ol className="parts">
        {entries.map((entry, n) => {
          const { name, values } = readPart(entry, parts);
          const part = parts.find((one) => one.name === name);
          const definition = part ? forms.definitions[part.definition] : undefined;
          const replace = (value: Record<string, unknown>) => write(entries.map((old, m) => (m === n ? writePart(name, value) : old)));
          const move = (by: number) => {
            const next = [...entries];
            const [taken] = next.splice(n, 1);
            next.splice(n + by, 0, taken);
            write(next);
          };
          return (
            <li key={`${name}-${n}`} className="part">
              <div className="panel-head">
                <h3>{name}</h3>
                <span>
                  <button type="button" className="quiet" disabled={n === 0} aria-label={`Move ${name} up`} onClick={() => move(-1)}>↑</button>
                  <button type="button" className="quiet" disabled={n === entries.length - 1} aria-label={`Move ${name} down`} onClick={() => move(1)}>↓</button>
                  <button type="button" className="quiet" aria-label={`Remove ${name}`} onClick={() => write(entries.filter((_, m) => m !== n))}>✕</button>
                </span>
              </div>
              {part ? <p><Prose of={part.summary} /></p> : <p className="bad-text">There is no {props.noun} of this name.</p>}
              {definition && <SchemaForm schema={definition} values={values} onChange={replace} />}
              {part && part.docs.length > 0 && (
                <details><summary>About {name}</summary>{part.docs.map((text) => <p key={text}><Prose of={text} /></p>)}{part.reference && <p className="muted small">{part.reference}</p>}</details>
              )}
            </li>
          );
        })}
      </ol>
      <div className="row">
        <label htmlFor={id}>Add {/^[aeio]/.test(props.noun) ? "an" : "a"} {props.noun}</label>
        <select id={id} value={adding} onChange={(event) => { setAdding(event.target.value); setDraft({}); }}>
          <option value="">choose</option>
          {parts.map((part) => <option key={part.name} value={part.name}>{part.name}</option>)}
        </select>
      </div>
      {chosen && schema && (
        <div className="part">
          <p><Prose of={chosen.summary} /></p>
          <SchemaForm schema={schema} values={draft} onChange={setDraft} />
          <button type="button" className="primary" disabled={missing.length > 0} onClick={() => { write([...entries, writePart(chosen.name, draft)]); setAdding(""); }}>
            Add {chosen.name}
          </button>
          {missing.length > 0 && <span className="muted small"> {missing.join(", ")} {missing.length === 1 ? "is" : "are"} required</span>}
        </div>
      )}
    </Panel>
  );
}
