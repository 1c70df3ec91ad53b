/** A tree of groups of values: drag and drop, or the keyboard by a menu on each value. */
import { useState } from "react";
import { change, move, paths } from "./tree-model";
import type { Group, Tree } from "./tree-model";

export function TreeEditor(props: { tree: Tree; outside: string[]; onChange: (tree: Tree) => void }) {
  // Empty groups exist only here until a value is moved into them.
  const [empty, setEmpty] = useState<{ path: string[]; name: string }[]>([]);
  const [name, setName] = useState("");
  let tree = props.tree;
  for (const one of empty) {
    tree = change(tree, one.path, (group) => (group.groups.some((g) => g.name === one.name) ? group : { ...group, groups: [...group.groups, { name: one.name, groups: [], values: [] }] }));
  }
  const places = paths(tree);
  const drop = (values: string[], to: string[]) => props.onChange(move(tree, values, to));
  const add = (path: string[]) => {
    const label = name.trim();
    if (!label || places.some((place) => place.path.at(-1) === label)) return;
    setEmpty([...empty, { path, name: label }]);
    setName("");
  };
  const rename = (path: string[], label: string) => {
    if (!label.trim() || places.some((place) => place.path.at(-1) === label)) return;
    props.onChange(change(tree, path.slice(0, -1), (group) => ({ ...group, groups: group.groups.map((g) => (g.name === path.at(-1) ? { ...g, name: label } : g)) })));
  };
  const dissolve = (path: string[]) => {
    setEmpty(empty.filter((one) => one.name !== path.at(-1)));
    props.onChange(change(tree, path.slice(0, -1), (group) => {
      const gone = group.groups.find((g) => g.name === path.at(-1))!;
      return { ...group, groups: [...group.groups.filter((g) => g !== gone), ...gone.groups], values: [...group.values, ...gone.values] };
    }));
  };
  return (
    <div className="tree">
      <form className="row" onSubmit={(event) => { event.preventDefault(); add([]); }}>
        <label>New group <input value={name} onChange={(event) => setName(event.target.value)} /></label>
        <button type="submit" disabled={!name.trim()}>Add group</button>
        <span className="muted small">Drag values onto a group, or use the menu of a value.</span>
      </form>
      {props.outside.length > 0 && <Node group={{ name: "values without a place", groups: [], values: props.outside }} path={null} places={places} drop={drop} rename={rename} dissolve={dissolve} addInside={add} pending={name} />}
      <Node group={tree} path={[]} places={places} drop={drop} rename={rename} dissolve={dissolve} addInside={add} pending={name} />
    </div>
  );
}

function Node(props: { group: Group; path: string[] | null; places: { path: string[]; label: string }[]; pending: string; drop: (values: string[], to: string[]) => void; rename: (path: string[], label: string) => void; dissolve: (path: string[]) => void; addInside: (path: string[]) => void }) {
  const { group, path } = props;
  const [over, setOver] = useState(false);
  const [label, setLabel] = useState<string | null>(null);
  return (
    <div className={`group ${over ? "over" : ""}`} role="group" aria-label={path?.length === 0 ? "all values" : group.name}
      onDragOver={(event) => { if (path) { event.preventDefault(); event.stopPropagation(); setOver(true); } }} onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        if (!path) return;
        event.preventDefault(); event.stopPropagation(); setOver(false);
        const value = event.dataTransfer.getData("text/plain");
        if (value) props.drop([value], path);
      }}>
      <div className="group-head">
        {path && path.length > 0 ? (
          <>
            <input aria-label={`Name of group ${group.name}`} value={label ?? group.name} onChange={(event) => setLabel(event.target.value)}
              onBlur={() => { if (label !== null && label !== group.name) props.rename(path, label); setLabel(null); }} />
            <button type="button" className="quiet" onClick={() => props.dissolve(path)}>Dissolve {group.name}</button>
            {props.pending.trim() && <button type="button" className="quiet" onClick={() => props.addInside(path)}>Add “{props.pending.trim()}” here</button>}
          </>
        ) : <strong>{path ? "all values (*)" : group.name}</strong>}
      </div>
      <div className="leaves">
        {group.values.map((value) => (
          <span key={value} className="leaf" draggable onDragStart={(event) => event.dataTransfer.setData("text/plain", value)}>
            {value}
            <select aria-label={`Move ${value} to`} value="" onChange={(event) => { const to = props.places[Number(event.target.value)]; if (to) props.drop([value], to.path); }}>
              <option value="">⋯</option>
              {props.places.map((place, n) => <option key={n} value={n}>{place.label}</option>)}
            </select>
          </span>
        ))}
      </div>
      {group.groups.map((one) => <Node key={one.name} {...props} group={one} path={[...(path ?? []), one.name]} />)}
    </div>
  );
}
