/** Charts: the SVG that the service draws for reports; bars of answers and steps of a loss, drawn from their numbers. */
import { useEffect, useRef } from "react";

/** A picture of a report. Its drawing has no text alternative of its own: the label is the one. */
export function Chart(props: { svg: string; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const drawn = new DOMParser().parseFromString(props.svg, "text/html").querySelector("svg");
    if (!drawn) return;
    for (const name of ["role", "aria-label"]) drawn.removeAttribute(name);
    drawn.setAttribute("aria-hidden", "true");
    place.current?.replaceChildren(document.importNode(drawn, true));
  }, [props.svg]);
  return <div className="chart" role="img" aria-label={props.label}><div ref={place} /></div>;
}

export interface Bar { label: string; value: number; low: number; high: number }

/** Bars with their intervals; zero is always shown. */
export function Bars(props: { bars: Bar[]; title: string; label: string }) {
  const least = Math.min(0, ...props.bars.map((bar) => Math.min(bar.low, bar.value)));
  const most = Math.max(0, ...props.bars.map((bar) => Math.max(bar.high, bar.value)));
  const x = (value: number) => 170 + (450 * (value - least)) / (most - least || 1);
  const end = 24 * props.bars.length;
  return (
    <svg className="plot" viewBox={`0 0 640 ${end + 40}`} role="img" aria-label={props.label}>
      <Axis ends={[least, most]} x={x} y={end} title={props.title} />
      {props.bars.map((bar, n) => (
        <g key={n}>
          <text x="162" y={24 * n + 16} textAnchor="end">{bar.label.length > 24 ? `${bar.label.slice(0, 23)}…` : bar.label}</text>
          <rect x={Math.min(x(0), x(bar.value))} y={24 * n + 4} width={Math.abs(x(bar.value) - x(0))} height="16" />
          <line className="span" x1={x(bar.low)} x2={x(bar.high)} y1={24 * n + 12} y2={24 * n + 12} />
        </g>
      ))}
    </svg>
  );
}

export interface Line { name: string; kind: "spent" | "cap"; points: { at: number; value: number }[] }

/** Lines that go in steps over time. */
export function Steps(props: { lines: Line[]; title: string; label: string }) {
  const points = props.lines.flatMap((line) => line.points);
  const [first, last] = [Math.min(...points.map((point) => point.at)), Math.max(...points.map((point) => point.at))];
  const most = Math.max(...points.map((point) => point.value)) || 1;
  const x = (at: number) => 60 + (560 * (at - first)) / (last - first || 1);
  const y = (value: number) => 220 - (190 * value) / most;
  const day = (at: number) => new Date(at).toLocaleDateString("en", { dateStyle: "medium" });
  return (
    <svg className="plot" viewBox="0 0 640 260" role="img" aria-label={props.label}>
      <line x1="60" y1="220" x2="620" y2="220" /><line x1="60" y1="20" x2="60" y2="220" />
      <text x="60" y="238">{day(first)}</text><text x="620" y="238" textAnchor="end">{day(last)}</text>
      <text x="14" y="14">{props.title}</text>
      {[0, 0.5, 1].map((part) => <text key={part} x="54" y={y(most * part) + 4} textAnchor="end">{Number((most * part).toPrecision(2))}</text>)}
      {props.lines.map((line, n) => (
        <g key={line.kind} className={line.kind}>
          <path d={line.points.map((point, at) => (at ? `H${x(point.at)}V${y(point.value)}` : `M${x(point.at)} ${y(point.value)}`)).join("")} />
          <line x1={180 + 190 * n} x2={200 + 190 * n} y1="256" y2="256" /><text x={206 + 190 * n} y="258">{line.name}</text>
        </g>
      ))}
    </svg>
  );
}

function Axis(props: { ends: [number, number]; x: (value: number) => number; y: number; title: string }) {
  const [least, most] = props.ends;
  return (
    <>
      <line x1={props.x(least)} x2={props.x(most)} y1={props.y + 2} y2={props.y + 2} />
      {[least, (least + most) / 2, most].map((value, n) => <text key={n} x={props.x(value)} y={props.y + 18} textAnchor="middle">{Number(value.toPrecision(3)).toLocaleString("en")}</text>)}
      <text x={props.x((least + most) / 2)} y={props.y + 36} textAnchor="middle">{props.title}</text>
    </>
  );
}
