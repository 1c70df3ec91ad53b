// Builds the pages of the app and of the server into ../src/sfumato/web/static and records the hash of its sources there.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../src/sfumato/web/static");

const pages = { "index.html": "src/main.tsx", "server.html": "src/server/server.tsx" };

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const built = await esbuild.build({
  entryPoints: [...Object.values(pages), "src/style.css"].map((path) => join(here, path)),
  outdir: join(out, "assets"),
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  define: { "process.env.NODE_ENV": '"production"' },
  metafile: true,
  logLevel: "warning",
});
const style = builtFrom("src/style.css");
for (const [page, entry] of Object.entries(pages)) {
  const text = readFileSync(join(here, "src/index.html"), "utf8").replace("SCRIPT", builtFrom(entry)).replace("STYLE", style);
  writeFileSync(join(out, page), text);
}
writeFileSync(join(out, "licenses.txt"), licenses());
writeFileSync(join(out, "sources.sha256"), digest() + "\n");

// The file that was built from an entry point.
function builtFrom(entry) {
  const [path] = Object.entries(built.metafile.outputs).find(([, facts]) => facts.entryPoint?.endsWith(entry));
  return path.split("/").pop();
}

// The same in tests/web/test_app_bundle.py: names and contents of all sources, in order of their names.
function digest() {
  const hash = createHash("sha256");
  for (const name of sources()) {
    hash.update(name + "\0");
    hash.update(readFileSync(join(here, name)));
    hash.update("\0");
  }
  return hash.digest("hex");
}

function sources() {
  const found = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(here.length + 1).replaceAll("\\", "/"));
  return ["build.mjs", "package-lock.json", "package.json", "tsconfig.json", ...found].sort();
}

// Name, version and full license text, with its copyright lines, of each library in the bundle.
function licenses() {
  const packages = new Set();
  for (const path of Object.keys(built.metafile.inputs)) {
    const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)?.pop();
    if (found) packages.add(found.slice("node_modules/".length));
  }
  return [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const facts = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no license text`);
    return `${name} ${facts.version}: ${facts.license}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  }).join("\n" + "-".repeat(80) + "\n\n");
}
