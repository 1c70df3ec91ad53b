/** The tree of a hierarchy: read from a taxonomy or from levels, changed, and written back. */
export interface Group { name: string; groups: Group[]; values: string[] }
export type Tree = Group;

/** The tree of a taxonomy as a recipe writes it: mappings name groups, lists hold values. */
export function fromTaxonomy(node: unknown, name = "*"): Tree {
  const group: Group = { name, groups: [], values: [] };
  if (Array.isArray(node)) {
    for (const item of node) {
      if (item !== null && typeof item === "object") {
        const below = fromTaxonomy(item, name);
        group.groups.push(...below.groups);
        group.values.push(...below.values);
      } else group.values.push(String(item));
    }
  } else if (node !== null && typeof node === "object") {
    for (const [key, below] of Object.entries(node)) {
      if (below === null) group.values.push(key);
      else group.groups.push(fromTaxonomy(below, key));
    }
  }
  return group;
}

export function toTaxonomy(tree: Tree): unknown {
  if (tree.groups.length === 0) return tree.values;
  const result: Record<string, unknown> = {};
  for (const group of tree.groups) {
    const below = toTaxonomy(group);
    // A group without values cannot stand in a recipe; it is kept in the editor only.
    if (!(Array.isArray(below) && below.length === 0)) result[group.name] = below;
  }
  for (const value of tree.values) result[value] = null;
  return result;
}

/** A tree from the levels of any hierarchy: the coarsest labels first. */
export function fromRows(rows: string[][]): Tree {
  const root: Group = { name: "*", groups: [], values: [] };
  for (const row of rows) {
    let place = root;
    let above = "*";
    for (let level = row.length - 2; level > 0; level--) {
      const label = row[level]!;
      if (label === above || label === row[0]) continue;
      above = label;
      let next = place.groups.find((group) => group.name === label);
      if (!next) place.groups.push((next = { name: label, groups: [], values: [] }));
      place = next;
    }
    place.values.push(row[0]!);
  }
  return root;
}

export function paths(tree: Tree, above: string[] = []): { path: string[]; label: string }[] {
  const here = { path: above, label: above.length ? above.join(" › ") : "no group" };
  return [here, ...tree.groups.flatMap((group) => paths(group, [...above, group.name]))];
}

export function change(tree: Tree, path: string[], edit: (group: Group) => Group): Tree {
  if (path.length === 0) return edit(tree);
  return { ...tree, groups: tree.groups.map((group) => (group.name === path[0] ? change(group, path.slice(1), edit) : group)) };
}

/** The tree with some values moved into a group. */
export function move(tree: Tree, values: string[], to: string[]): Tree {
  const without = (group: Group): Group => ({ ...group, values: group.values.filter((v) => !values.includes(v)), groups: group.groups.map(without) });
  return change(without(tree), to, (group) => ({ ...group, values: [...group.values, ...values] }));
}
