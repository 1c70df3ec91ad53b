/** Forms made from the fields of parts (JSON Schema): a new part needs no edit here. */
import { Prose } from "./ui";
import { useEffect, useId, useState } from "react";
import { get } from "./api";
import { inner } from "./form-model";
import type { PartInfo, Schema } from "./form-model";
import { columnsOf, useStore } from "./store";

export interface Forms { definitions: Record<string, Schema>; parts: Record<string, PartInfo[]>; about: Schema; limits: string[]; presets: { name: string; about: string }[] }

let known: Forms | null = null;

/** The forms of all parts; null until the service has collected them. */
export function useForms(): Forms | null {
  const [forms, setForms] = useState<Forms | null>(known);
  useEffect(() => {
    if (forms) return;
    let ended = false;
    const ask = async () => {
      while (!ended) {
        const found = (await get("/api/forms").catch(() => ({}))) as Partial<Forms>;
        if (found.parts) {
          known = found as Forms;
          if (!ended) setForms(known);
          return;
        }
        await new Promise((done) => setTimeout(done, 700));
      }
    };
    void ask();
    return () => { ended = true; };
  }, [forms]);
  return forms;
}

export function SchemaForm(props: { schema: Schema; values: Record<string, unknown>; onChange: (values: Record<string, unknown>) => void; open?: boolean }) {
  const { schema, values } = props;
  const required = schema.required ?? [];
  const names = Object.keys(schema.properties ?? {});
  const set = (name: string, value: unknown) => {
    const next = { ...values };
    if (value === undefined || value === null) delete next[name];
    else next[name] = value;
    props.onChange(next);
  };
  if (!names.length) return <p className="muted small">This part has no settings.</p>;
  const shown = names.filter((name) => props.open || required.includes(name) || name in values);
  const rest = names.filter((name) => !shown.includes(name));
  const field = (name: string) => (
    <Field key={name} name={name} schema={schema.properties![name]!} value={values[name]} required={required.includes(name)} onChange={(value) => set(name, value)} />
  );
  return (
    <div className="schema-form">
      {shown.map(field)}
      {rest.length > 0 && <details><summary>{rest.length} more {rest.length === 1 ? "setting" : "settings"}</summary>{rest.map(field)}</details>}
    </div>
  );
}

function Field(props: { name: string; schema: Schema; value: unknown; required: boolean; onChange: (value: unknown) => void }) {
  const { recipe } = useStore();
  const columns = Object.keys(columnsOf(recipe));
  const schema = inner(props.schema);
  const id = useId();
  const { name, value } = props;
  const label = <label htmlFor={id}>{name.replaceAll("_", " ")}{props.required && <span className="muted"> (required)</span>}</label>;
  const hint = props.schema.description ? <small className="muted"><Prose of={props.schema.description} /></small> : null;
  const standard = props.schema.default === undefined || props.schema.default === null ? "" : String(props.schema.default);
  let input;
  if (schema.enum && (value === undefined || schema.enum.includes(value))) {
    input = (
      <select id={id} value={String(value ?? "")} onChange={(e) => props.onChange(e.target.value === "" ? undefined : schema.enum!.find((v) => String(v) === e.target.value))}>
        <option value="">{standard ? `default (${standard})` : "choose"}</option>
        {schema.enum.map((option) => <option key={String(option)}>{String(option)}</option>)}
      </select>
    );
  } else if (schema.type === "boolean") {
    input = (
      <select id={id} value={value === undefined ? "" : String(value)} onChange={(e) => props.onChange(e.target.value === "" ? undefined : e.target.value === "true")}>
        <option value="">default ({standard})</option><option value="true">yes</option><option value="false">no</option>
      </select>
    );
  } else if (schema.type === "integer" || schema.type === "number") {
    input = <Draft id={id} type="number" value={value === undefined ? "" : String(value)} placeholder={standard} read={(text) => (text === "" ? undefined : Number(text))} onChange={props.onChange} />;
  } else if (schema.type === "string" && ["column", "secret", "target"].includes(name)) {
    input = (
      <select id={id} value={String(value ?? "")} onChange={(e) => props.onChange(e.target.value || undefined)}>
        <option value="">{props.required ? "choose a column" : "default"}</option>
        {columns.map((column) => <option key={column}>{column}</option>)}
      </select>
    );
  } else if (schema.type === "string") {
    input = <Draft id={id} value={String(value ?? "")} placeholder={standard} read={(text) => text || undefined} onChange={props.onChange} />;
  } else if (schema.type === "array" && ["string", "number", "integer"].includes(inner(schema.items ?? {}).type ?? "")) {
    const numeric = inner(schema.items ?? {}).type !== "string";
    const read = (text: string) => {
      const parts = text.split(",").map((part) => part.trim()).filter(Boolean);
      return parts.length ? parts.map((part) => (numeric ? Number(part) : part)) : undefined;
    };
    input = <Draft id={id} value={Array.isArray(value) ? value.join(", ") : ""} placeholder={numeric ? "5, 10, 20" : "separated by commas"} read={read} onChange={props.onChange} list={name === "columns" ? columns : undefined} />;
  } else {
    const read = (text: string) => { if (!text.trim()) return undefined; try { return JSON.parse(text) as unknown; } catch { return text; } };
    input = <Draft id={id} value={value === undefined ? "" : JSON.stringify(value)} placeholder="JSON, as in the recipe" read={read} onChange={props.onChange} />;
  }
  return <div className="field">{label}{input}{hint}</div>;
}

/** An input that reports its value when it is left or Enter is pressed. */
function Draft(props: { id: string; value: string; type?: string; placeholder?: string; read: (text: string) => unknown; onChange: (value: unknown) => void; list?: string[] }) {
  const [draft, setDraft] = useState<string | null>(null);
  const commit = () => { if (draft !== null && draft !== props.value) props.onChange(props.read(draft)); setDraft(null); };
  return (
    <>
      <input id={props.id} type={props.type ?? "text"} step="any" placeholder={props.placeholder} value={draft ?? props.value}
        list={props.list ? `${props.id}-list` : undefined} onChange={(e) => setDraft(e.target.value)} onBlur={commit} onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); commit(); } }} />
      {props.list && <datalist id={`${props.id}-list`}>{props.list.map((item) => <option key={item} value={item} />)}</datalist>}
    </>
  );
}
