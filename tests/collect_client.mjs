// Drives clients/typescript/sfumato-collect.ts for the tests: node collect_client.mjs MODULE TASK FILE
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , module, task, file] = process.argv;
const { checkDesign, lossOf, makeReport, reportLine, selfTest } = await import(pathToFileURL(module));
const given = JSON.parse(readFileSync(file, "utf-8"));

const recorded = (hex) => {
  const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
  let position = 0;
  return {
    left: () => bytes.length - position,
    take(size) {
      if ((position += size) > bytes.length) throw new Error("the recorded random bytes are used up");
      return bytes.subarray(position - size, position);
    },
  };
};
const attempt = (action) => {
  try {
    return { done: action() ?? null };
  } catch (error) {
    return { [error.name]: error.message };
  }
};
const storageOf = (kept) => ({ getItem: (key) => kept[key] ?? null, setItem: (key, text) => (kept[key] = text) });

const tasks = {
  vectors: () =>
    given.map(({ client, cases }) => cases.map(({ answers, random }) => {
      const source = recorded(random);
      return { report: makeReport(client, answers, null, source), left: source.left() };
    })),
  losses: () => given.map((client) => client.questions.map(lossOf)),
  tests: () => given.map(({ question, stuck }) => attempt(() => {
    if (stuck === undefined) return selfTest(question);
    selfTest(question, { take: (size) => new Uint8Array(size).fill(stuck) });
  })),
  designs: () => given.map((client) => attempt(() => checkDesign(client))),
  // One device that is asked several times; a storage of null, of "forgets" or of what was kept before.
  device: () => {
    const { client, answers, storage } = given;
    const kept = storage === "forgets" ? { getItem: () => null, setItem: () => {} } : storage && storageOf(storage);
    return answers.map((each) => attempt(() => makeReport(client, each, kept)));
  },
  lines: () => given.answers.map((answers) => reportLine(makeReport(given.client, answers, null))).join(""),
};
process.stdout.write(JSON.stringify(tasks[task]()));
