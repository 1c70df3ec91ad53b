// Drives clients/typescript/sfumato-collect.ts for the tests: node collect_client.mjs MODULE TASK FILE
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , module, task, file] = process.argv;
const { browserStorage, checkDesign, lossOf, makeReport, reportLine, selfTest } = await import(pathToFileURL(module));
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
const attempt = async (action) => {
  try {
    return { done: (await action()) ?? null };
  } catch (error) {
    return { [error.name]: error.message };
  }
};
// A storage without tabs: what is kept is there at once.
const storageOf = (kept) => ({
  keep: async (key, make) => (kept[key] = make(kept[key] ?? null)),
});
// As much of IndexedDB as a storage needs. Transactions start when the one before is done, requests end later: between
// a request and its end, other tabs run.
const fakeIndexedDB = (kept) => {
  let last = Promise.resolve();
  const later = () => new Promise((done) => setTimeout(done, 1));
  const transaction = () => {
    const own = { changes: [], aborted: false, abort: () => (own.aborted = true) };
    const requests = [];
    own.objectStore = () => ({
      get: (key) => (requests.push({ key }), requests.at(-1)),
      put: (text, key) => own.changes.push([key, text]),
    });
    last = last.then(async () => {
      await later();
      for (const request of requests) {
        request.result = kept[request.key];
        request.onsuccess();
      }
      await later();
      if (!own.aborted) for (const [key, text] of own.changes) kept[key] = text;
      own.aborted ? own.onabort() : own.oncomplete();
    });
    return own;
  };
  return {
    open() {
      const opening = { result: { transaction, close() {}, createObjectStore() {} } };
      later().then(() => (opening.onupgradeneeded(), opening.onsuccess()));
      return opening;
    },
  };
};

const tasks = {
  vectors: () =>
    Promise.all(given.map(({ client, cases }) => Promise.all(cases.map(async ({ answers, random }) => {
      const source = recorded(random);
      return { report: await makeReport(client, answers, null, source), left: source.left() };
    })))),
  losses: () => given.map((client) => client.questions.map(lossOf)),
  tests: () => Promise.all(given.map(({ question, stuck }) => attempt(() => {
    if (stuck === undefined) return selfTest(question);
    selfTest(question, { take: (size) => new Uint8Array(size).fill(stuck) });
  }))),
  designs: () => Promise.all(given.map((client) => attempt(() => checkDesign(client)))),
  // One device that is asked several times; a storage of null, of "forgets" or of what was kept before.
  device: async () => {
    const { client, answers, storage } = given;
    const kept = storage === "forgets" ? { keep: async () => undefined } : storage && storageOf(storage);
    const results = [];
    for (const each of answers) results.push(await attempt(() => makeReport(client, each, kept)));
    return results;
  },
  // Tabs that ask at once, each with an open database of its own.
  tabs: () => {
    const factory = fakeIndexedDB({});
    return Promise.all(given.answers.map((each) => attempt(() => makeReport(given.client, each, browserStorage(factory)))));
  },
  lines: async () => {
    const lines = [];
    for (const answers of given.answers) lines.push(reportLine(await makeReport(given.client, answers, null)));
    return lines.join("");
  },
};
process.stdout.write(JSON.stringify(await tasks[task]()));
