/** Fields of parts as JSON Schema, and parts as a recipe writes them. */
export interface Schema {
  type?: string; enum?: unknown[]; anyOf?: Schema[]; $ref?: string; description?: string; title?: string; default?: unknown;
  properties?: Record<string, Schema>; required?: string[]; items?: Schema; minimum?: number; maximum?: number;
  exclusiveMinimum?: number; exclusiveMaximum?: number; const?: unknown;
}
export interface PartInfo { name: string; definition: string; summary: string; docs: string[]; reference: string; main: string | null; example: Record<string, unknown> }

/** The parts of a list in the recipe, whatever way they are written: `- name`, `- name: 5`, `- name: {k: 5}`. */
export function readPart(entry: unknown, parts: PartInfo[]): { name: string; values: Record<string, unknown> } {
  if (typeof entry === "string") return { name: entry, values: {} };
  const [name, value] = Object.entries((entry ?? {}) as Record<string, unknown>)[0] ?? ["", null];
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return { name, values: value as Record<string, unknown> };
  const main = parts.find((part) => part.name === name)?.main;
  return { name, values: value === null || value === undefined || !main ? {} : { [main]: value } };
}

export function writePart(name: string, values: Record<string, unknown>): unknown {
  return Object.keys(values).length ? { [name]: values } : name;
}

/** The one schema of a field that is not null. */
export function inner(schema: Schema): Schema {
  const options = (schema.anyOf ?? []).filter((option) => option.type !== "null");
  if (options.length === 1) return { ...options[0], description: schema.description };
  if (options.length > 1 && options.every((option) => option.type === "number" || option.type === "integer")) {
    return { ...options[0], type: "number", description: schema.description };
  }
  const names = options.find((option) => option.enum && options.length > 1 && options.some((o) => o.type === "object"));
  if (names) return { enum: names.enum, description: schema.description };
  return schema;
}
