/** Charts: the Vega-Lite specifications of reports, drawn without eval so that the content security policy holds. */
import { useEffect, useRef, useState } from "react";

export function Chart(props: { spec: unknown; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  const { spec } = props;
  useEffect(() => {
    let ended = false;
    let finalize = () => {};
    void (async () => {
      try {
        const [{ compile }, vega, { expressionInterpreter }] = await Promise.all([
          import("vega-lite"), import("vega"), import("vega-interpreter"),
        ]);
        if (ended || !place.current) return;
        const copy = structuredClone(spec) as Parameters<typeof compile>[0] & { width?: unknown };
        const width = place.current.clientWidth;
        if (typeof copy.width === "number" && width > 0) copy.width = Math.min(copy.width, width);
        const runtime = vega.parse(compile(copy, { logger: vega.logger(vega.Error) }).spec, undefined, { ast: true });
        const view = new vega.View(runtime, {
          expr: expressionInterpreter, renderer: "svg", container: place.current, hover: false, loader: noLoader,
        });
        finalize = () => view.finalize();
        await view.runAsync();
        // The picture has one text alternative, its label; the drawing inside it has none of its own.
        for (const mark of place.current?.parentElement?.querySelectorAll("[role], [aria-roledescription]") ?? []) {
          mark.removeAttribute("role");
          mark.removeAttribute("aria-roledescription");
          mark.removeAttribute("aria-label");
        }
      } catch {
        setFailed(true);
      }
    })();
    return () => { ended = true; finalize(); };
  }, [spec]);
  if (failed) return <p className="muted">This picture could not be drawn; the table has its numbers.</p>;
  return <div className="chart" role="img" aria-label={props.label}><div ref={place} /></div>;
}

/** Specifications hold their data; nothing is ever loaded. */
const noLoader = {
  load: () => Promise.reject(new Error("no loading")),
  sanitize: () => Promise.reject(new Error("no loading")),
  http: () => Promise.reject(new Error("no loading")),
  file: () => Promise.reject(new Error("no loading")),
};
