/** A virtual table: only the rows in view exist, and they are loaded in pages. */
import { useEffect, useRef, useState } from "react";

const HEIGHT = 28;
const PAGE = 100;
const TALLEST = 15_000_000;

export function Grid(props: { columns: string[]; rows: number; load: (offset: number, count: number) => Promise<(string | null)[][]>; label: string; version: unknown; head?: (column: string) => React.ReactNode }) {
  const { rows, load, version } = props;
  const [top, setTop] = useState(0);
  const [pages, setPages] = useState<Map<number, (string | null)[][]>>(new Map());
  const wanted = useRef(new Set<number>());
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => { setPages(new Map()); wanted.current.clear(); }, [version]);
  const view = 18;
  const full = rows * HEIGHT;
  const tall = Math.min(full, TALLEST);
  const first = Math.max(0, Math.min(rows - view, Math.floor(full > TALLEST ? (top / (tall - view * HEIGHT)) * (rows - view) : top / HEIGHT)));
  const last = Math.min(rows, first + view + 2);
  useEffect(() => {
    for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) {
      if (wanted.current.has(page)) continue;
      wanted.current.add(page);
      load(page * PAGE, PAGE).then(
        (found) => setPages((old) => {
          const next = new Map(old);
          if (next.size > 30) next.clear();
          return next.set(page, found);
        }),
        () => wanted.current.delete(page),
      );
    }
    if (wanted.current.size > 60) wanted.current = new Set([...pages.keys()].slice(-10));
  }, [first, last, load, version, pages]);
  const shown: number[] = [];
  for (let row = first; row < last; row++) shown.push(row);
  const shift = Math.min(top, tall - shown.length * HEIGHT);
  return (
    <div className="grid-box" ref={box} tabIndex={0} role="region" aria-label={props.label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <table className="grid" aria-rowcount={rows + 1}>
        <thead>
          <tr><th scope="col">row</th>{props.columns.map((name) => <th scope="col" key={name}>{name}{props.head?.(name)}</th>)}</tr>
        </thead>
        <tbody>
          <tr aria-hidden="true" className="spacer"><td style={{ height: Math.max(0, full > TALLEST ? shift : first * HEIGHT) }} /></tr>
          {shown.map((row) => {
            const cells = pages.get(Math.floor(row / PAGE))?.[row % PAGE];
            return (
              <tr key={row} aria-rowindex={row + 2}>
                <th scope="row">{(row + 1).toLocaleString("en")}</th>
                {props.columns.map((name, n) => <td key={name}>{cells ? (cells[n] ?? <i className="muted">empty</i>) : "…"}</td>)}
              </tr>
            );
          })}
          <tr aria-hidden="true" className="spacer"><td style={{ height: Math.max(0, full > TALLEST ? tall - shift - shown.length * HEIGHT : (rows - last) * HEIGHT) }} /></tr>
        </tbody>
      </table>
    </div>
  );
}
