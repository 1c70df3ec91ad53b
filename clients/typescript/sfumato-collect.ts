/**
 * Local differential privacy in a web page: randomize an answer on the person's own device and send only the report.
 *
 * `sfumato collect design survey.yaml --client client.json` writes the public parameters that this module needs. From
 * the same random bytes it makes the same reports as the Python package: see tests/data/collect_vectors.json.
 */

export type Answer = string | number | boolean;
type Parameters = Readonly<Record<string, number>>;

/** One question: a list of values, or a number between `low` and `low + span`. Chances are in units of 2**-32. */
export interface Question {
  readonly name: string;
  readonly protocol: string;
  readonly values?: readonly string[];
  readonly low?: number;
  readonly span?: number;
  readonly parameters: Parameters;
}

/**
 * What `sfumato collect design --client` writes. `answers` is how many the loss of a memoized survey covers, `reports` is
 * how many one person sends.
 */
export interface ClientDesign {
  readonly format: string;
  readonly survey: string;
  readonly fingerprint: string;
  readonly epsilon: number;
  readonly memoized: boolean;
  readonly answers: number | null;
  readonly reports: number;
  readonly questions: readonly Question[];
}

/** A report as the collector reads it: one line of JSON each. */
export type Report = Readonly<Record<"survey" | "question" | "report", string>>;

/** Where random bytes come from: `take` gives the next `size` of them. */
export type RandomSource = { take(size: number): Uint8Array };

/**
 * Where a device keeps its report. `keep` replaces the text of a key by what `make` returns for it (null if there is
 * none), as one step that no other tab can come between, and returns the new text once it is stored. `localStorage` has
 * no such step: two tabs that start at once would each draw a report.
 */
export interface ReportStorage {
  keep(key: string, make: (kept: string | null) => string): Promise<string>;
}

/** A storage in IndexedDB, whose transactions run one after the other, also those of several tabs. */
export function browserStorage(factory: IDBFactory = indexedDB): ReportStorage {
  const store = "reports";
  return {
    keep: (key, make) =>
      new Promise((resolve, reject) => {
        const opening = factory.open("sfumato-collect", 1);
        opening.onupgradeneeded = () => void opening.result.createObjectStore(store);
        opening.onerror = () => reject(new CollectError("The storage of the browser cannot be opened."));
        opening.onsuccess = () => {
          const database = opening.result;
          const transaction = database.transaction(store, "readwrite", { durability: "strict" });
          const reading = transaction.objectStore(store).get(key);
          let [text, failure]: [string, unknown] = ["", new CollectError("The storage keeps nothing.")];
          reading.onsuccess = () => {
            try {
              text = make(reading.result ?? null);
              transaction.objectStore(store).put(text, key);
            } catch (error) {
              failure = error;
              transaction.abort();
            }
          };
          transaction.oncomplete = () => (database.close(), resolve(text));
          transaction.onabort = () => (database.close(), reject(failure));
        };
      }),
  };
}

/** Nothing was randomized or sent. The message never holds an answer. */
export class CollectError extends Error {
  override readonly name = "CollectError";
}

/** How often reports of the place that is sent are near the place that is looked at. */
type Rate = readonly [sent: number, looked: number, chance: number];

interface Randomizer {
  randomize(place: number, given: Parameters, source: RandomSource): Uint8Array;
  /** Whether the report is among the more likely ones of a value or a grid position. */
  near(report: DataView, place: number, given: Parameters): boolean;
  rates(given: Parameters): readonly Rate[];
  loss(given: Parameters): number;
}

const ONE = 2 ** 32;

/** The entropy of the browser; `getRandomValues` gives at most 65,536 bytes at once. */
export const SYSTEM_ENTROPY: RandomSource = {
  take(size) {
    const bytes = new Uint8Array(size);
    for (let start = 0; start < size; start += 65536) crypto.getRandomValues(bytes.subarray(start, start + 65536));
    return bytes;
  },
};

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const word = (source: RandomSource): number => viewOf(source.take(4)).getUint32(0, true);

/** True with probability exactly `chance` / 2**32. */
const chosen = (chance: number, source: RandomSource): boolean => word(source) < chance;

/** A uniform whole number in 0 .. bound - 1, by rejection sampling. */
function below(bound: number, source: RandomSource): number {
  const fair = Math.floor(ONE / bound) * bound;
  for (let tries = 0, drawn = 0; tries < 256; tries++) if ((drawn = word(source)) < fair) return drawn % bound;
  throw new CollectError("The source of random bytes is broken. No answer was randomized.");
}

/** Independent bits, the first one lowest, each 1 with `chance` / 2**32; 64 lanes compare digit by digit. */
function biasedRow(chance: number, bits: number, source: RandomSource): Uint8Array {
  const words = Math.ceil(bits / 64);
  const out = new DataView(new ArrayBuffer(8 * words));
  for (let filled = 0; filled < words; ) {
    const random = viewOf(source.take(8 * (32 + 9 * (words - filled - 1))));
    for (let used = 0; filled < words && 8 * (used + 32) <= random.byteLength; filled++) {
      const [less, open] = [[0, 0], [-1, -1]];
      for (let digit = 31; digit >= 0 && (open[0]! | open[1]!) !== 0; digit--, used++) {
        const one = (chance >>> digit) & 1;
        for (const half of [0, 1]) {
          const lanes = random.getUint32(8 * used + 4 * half, true);
          if (one) less[half]! |= open[half]! & ~lanes;
          open[half]! &= one ? lanes : ~lanes;
        }
      }
      for (const half of [0, 1]) out.setUint32(8 * filled + 4 * half, less[half]!, true);
    }
  }
  const kept = new Uint8Array(out.buffer, 0, Math.ceil(bits / 8));
  for (let bit = bits; bit < 8 * kept.length; bit++) setBit(kept, bit, false);
  return kept;
}

function setBit(bytes: Uint8Array, bit: number, on: boolean): void {
  const [at, mask] = [bit >> 3, 1 << (bit & 7)];
  bytes[at] = on ? bytes[at]! | mask : bytes[at]! & ~mask;
}
const bitOf = (report: DataView, bit: number): boolean => ((report.getUint8(bit >> 3) >> (bit & 7)) & 1) === 1;

/** A whole number in little-endian bytes; negative ones as two's complement of four bytes. */
function littleEndian(number: number, width: number): Uint8Array {
  const bytes = new Uint8Array(4);
  viewOf(bytes).setUint32(0, number >>> 0, true);
  return bytes.slice(0, width);
}

function parameter(given: Parameters, name: string): number {
  const value = given[name];
  if (value === undefined || !Number.isSafeInteger(value) || value < 0 || value >= ONE) {
    throw new CollectError(`The client design has no valid parameter ${name}. Write it anew with --client.`);
  }
  return value;
}

const share = (given: Parameters, name: string): number => parameter(given, name) / ONE;

const logOdds = (chance: number): number => Math.log(chance / (1 - chance));
/** Loss if one of `near` equally likely reports is sent with probability `chance`, else one of `far` others. */
const bandLoss = (chance: number, near: number, far: number): number =>
  Math.abs(logOdds(chance) + Math.log(far / near));

/** A uniform number in 0 .. count - 1 other than `own`. */
function otherThan(own: number, count: number, source: RandomSource): number {
  const drawn = below(count - 1, source);
  return drawn + (drawn >= own ? 1 : 0);
}

const generalizedRandomizedResponse: Randomizer = {
  randomize(code, given, source) {
    const values = parameter(given, "values");
    const kept = chosen(parameter(given, "keep"), source);
    const other = otherThan(code, values, source);
    return littleEndian(kept ? code : other, values <= 256 ? 1 : values <= 65536 ? 2 : 3);
  },
  near: (report, code) => littleEndian(code, report.byteLength).every((byte, at) => report.getUint8(at) === byte),
  rates: (given) =>
    [[0, 0, share(given, "keep")], [0, 1, (1 - share(given, "keep")) / (parameter(given, "values") - 1)]],
  loss: (given) => bandLoss(share(given, "keep"), 1, parameter(given, "values") - 1),
};

const unaryEncoding: Randomizer = {
  randomize(code, given, source) {
    const bits = biasedRow(parameter(given, "zero"), parameter(given, "values"), source);
    setBit(bits, code, chosen(parameter(given, "one"), source));
    return bits;
  },
  near: bitOf,
  rates: (given) => [[0, 0, share(given, "one")], [0, 1, share(given, "zero")]],
  loss: (given) => Math.abs(logOdds(share(given, "one")) - logOdds(share(given, "zero"))),
};

function bucketOf(functionBytes: DataView, key: number, buckets: number): number {
  const [multiplier, offset] = [functionBytes.getBigUint64(0, true), functionBytes.getBigUint64(8, true)];
  const high = BigInt.asUintN(64, multiplier * BigInt(key) + offset) >> 32n;
  return Number((high * BigInt(buckets)) >> 32n);
}

const optimizedLocalHashing: Randomizer = {
  randomize(code, given, source) {
    const buckets = parameter(given, "buckets");
    const report = new Uint8Array(20);
    report.set(source.take(16));
    const own = bucketOf(viewOf(report), code, buckets);
    const kept = chosen(parameter(given, "keep"), source);
    const other = otherThan(own, buckets, source);
    report.set(littleEndian(kept ? own : other, 4), 16);
    return report;
  },
  near: (report, code, given) => report.getUint32(16, true) === bucketOf(report, code, parameter(given, "buckets")),
  rates: (given) => [[0, 0, share(given, "keep")], [0, 1, 1 / parameter(given, "buckets")]],
  loss: (given) => bandLoss(share(given, "keep"), 1, parameter(given, "buckets") - 1),
};

const subsetSelection: Randomizer = {
  randomize(code, given, source) {
    const [values, size] = [parameter(given, "values"), parameter(given, "size")];
    const inside = chosen(parameter(given, "inside"), source);
    const random = viewOf(source.take(8 * values));
    // A uniform random order of the other values; the true one comes first or last.
    const ranks = BigUint64Array.from({ length: values }, (_, i) => (random.getBigUint64(8 * i, true) >> 1n) + 1n);
    ranks[code] = inside ? 0n : 2n ** 64n - 1n;
    const last = ranks.slice().sort()[size - 1]!;
    const report = new Uint8Array(Math.ceil(values / 8));
    let ties = size - ranks.filter((rank) => rank < last).length;
    ranks.forEach((rank, value) => setBit(report, value, rank < last || (rank === last && ties-- > 0)));
    return report;
  },
  near: bitOf,
  rates(given) {
    const inside = share(given, "inside");
    return [[0, 0, inside], [0, 1, (parameter(given, "size") - inside) / (parameter(given, "values") - 1)]];
  },
  loss: (given) =>
    bandLoss(share(given, "inside"), parameter(given, "size"), parameter(given, "values") - parameter(given, "size")),
};

/** Parity of the common bits: 1 where the Hadamard matrix holds -1. */
function hadamardSign(row: number, column: number): number {
  let common = row & column;
  for (let shift = 16; shift > 0; shift >>= 1) common ^= common >>> shift;
  return common & 1;
}

const hadamardResponse: Randomizer = {
  randomize(code, given, source) {
    const column = below(parameter(given, "size"), source);
    const flipped = chosen(parameter(given, "keep"), source) ? 0 : 1;
    return littleEndian((column << 1) | (hadamardSign(code + 1, column) ^ flipped), 4);
  },
  near: (report, code) => hadamardSign(code + 1, report.getUint32(0, true) >>> 1) === (report.getUint8(0) & 1),
  rates: (given) => [[0, 0, share(given, "keep")], [0, 1, 0.5]],
  loss: (given) => bandLoss(share(given, "keep"), 1, 1),
};

/** Rates of a protocol for numbers: the same at both ends of the grid. */
const atBothEnds = (given: Parameters, chance: number): readonly Rate[] =>
  [0, parameter(given, "steps")].map((end) => [end, end, chance]);

function duchiBit(position: number, given: Parameters, source: RandomSource): number {
  const least = ONE - parameter(given, "most");
  const chance = least + Math.floor(((ONE - 2 * least) * position) / parameter(given, "steps"));
  return chosen(chance, source) ? 1 : 0;
}

const duchi: Randomizer = {
  randomize: (position, given, source) => littleEndian(duchiBit(position, given, source), 4),
  near: (report, position) => report.getInt32(0, true) === (position ? 1 : 0),
  rates: (given) => atBothEnds(given, share(given, "most")),
  loss: (given) => bandLoss(share(given, "most"), 1, 1),
};

const band: Randomizer = {
  randomize(position, given, source) {
    const bandWidth = parameter(given, "band");
    const inside = chosen(parameter(given, "inside"), source);
    const within = position + below(bandWidth, source);
    const outside = below(parameter(given, "steps") + 1, source);
    return littleEndian(inside ? within : outside + (outside >= position ? bandWidth : 0), 4);
  },
  near: (report, position, given) =>
    report.getInt32(0, true) >= position && report.getInt32(0, true) < position + parameter(given, "band"),
  rates: (given) => atBothEnds(given, share(given, "inside")),
  loss: (given) => bandLoss(share(given, "inside"), parameter(given, "band"), parameter(given, "steps") + 1),
};

const hybrid: Randomizer = {
  randomize(position, given, source) {
    const piecewise = chosen(parameter(given, "piecewise"), source);
    const point = band.randomize(position, given, source);
    const bit = duchiBit(position, given, source);
    return piecewise ? point : littleEndian(bit - 2, 4);
  },
  near: (report, position, given) =>
    report.getInt32(0, true) === (position ? -1 : -2) || band.near(report, position, given),
  rates(given) {
    const piecewise = share(given, "piecewise");
    return atBothEnds(given, piecewise * share(given, "inside") + (1 - piecewise) * share(given, "most"));
  },
  loss: (given) => Math.max(band.loss(given), duchi.loss(given)),
};

const RANDOMIZERS: ReadonlyMap<string, Randomizer> = new Map([
  ["generalized-randomized-response", generalizedRandomizedResponse],
  ...["symmetric-unary-encoding", "optimized-unary-encoding"].map((name) => [name, unaryEncoding] as const),
  ["optimized-local-hashing", optimizedLocalHashing],
  ["subset-selection", subsetSelection],
  ["hadamard-response", hadamardResponse],
  ...["piecewise", "square-wave"].map((name) => [name, band] as const),
  ["duchi", duchi],
  ["hybrid", hybrid],
]);

function randomizerOf({ protocol }: Question): Randomizer {
  const found = RANDOMIZERS.get(protocol);
  if (found === undefined) throw new CollectError(`This module has no protocol ${protocol}.`);
  return found;
}

/** Privacy loss of one report of a question, computed from its chances. */
export const lossOf = (question: Question): number => randomizerOf(question).loss(question.parameters);

const tested = new WeakSet<Question>();

/** Refuse a randomizer whose reports do not have the stated rates (Chernoff bound of the binomial, p < 1e-9). */
export function selfTest(question: Question, source: RandomSource = SYSTEM_ENTROPY): void {
  const [randomizer, given] = [randomizerOf(question), question.parameters];
  if (source === SYSTEM_ENTROPY && tested.has(question)) return;
  const bytes = randomizer.randomize(0, given, source).length;
  const count = Math.max(256, Math.min(1 << 14, Math.floor((1 << 18) / bytes)));
  for (const [sent, looked, chance] of randomizer.rates(given)) {
    let near = 0;
    for (let i = 0; i < count; i++) {
      if (randomizer.near(viewOf(randomizer.randomize(sent, given, source)), looked, given)) near++;
    }
    const part = (seen: number, stated: number): number => (seen === 0 ? 0 : seen * Math.log(seen / (count * stated)));
    if (part(near, chance) + part(count - near, 1 - chance) > Math.log(2 / 1e-9)) {
      throw new CollectError(`The randomizer ${question.protocol} failed its self-test. No answer was randomized.`);
    }
  }
  if (source === SYSTEM_ENTROPY) tested.add(question);
}

/** The number of a value, or a number between the bounds; refused if the question does not have this answer. */
function checkedAnswer(question: Question, answer: Answer | null | undefined): number {
  if (question.values !== undefined) {
    const code = answer === null || answer === undefined ? -1 : question.values.indexOf(String(answer));
    if (code < 0) throw new CollectError(`The answer to ${question.name} is not among its values.`);
    return code;
  }
  const written = typeof answer === "string" && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(answer.trim());
  const number = typeof answer === "number" || written ? Number(answer) : NaN;
  if (!Number.isFinite(number)) throw new CollectError(`The answer to ${question.name} is not a number.`);
  return number;
}

/** The value's number, or the number rounded at random to a position of the public grid. */
function placeOf(question: Question, checked: number, source: RandomSource): number {
  if (question.values !== undefined) return checked;
  const share = Math.min(1, Math.max(0, (checked - question.low!) / question.span!));
  const place = share * parameter(question.parameters, "steps");
  return Math.floor(place) + (chosen(Math.floor((place - Math.floor(place)) * ONE), source) ? 1 : 0);
}

/** Refuse a design that this module cannot follow, or whose chances lose more than its epsilon. */
export function checkDesign(design: ClientDesign): void {
  if (design.format !== "sfumato-collect/1" || !(design.questions.length > 0)) {
    throw new CollectError("This is not a client design. Write one with `sfumato collect design --client`.");
  }
  for (const question of design.questions) {
    const listed = question.values?.length === question.parameters["values"];
    const bounded = question.values !== undefined || (Number.isFinite(question.low) && question.span! > 0);
    if (!listed || !bounded || !(lossOf(question) <= design.epsilon * (1 + 1e-9)) || !(design.epsilon <= 20)) {
      throw new CollectError(`The design of ${question.name} loses more than its epsilon, or is damaged.`);
    }
  }
}

type Kept = { readonly question?: Question; readonly reports: Readonly<Record<string, string>>; readonly sent: number };

function readKept(text: string | null, design: ClientDesign): Kept {
  if (text === null) return { reports: {}, sent: 0 };
  try {
    const { question: name, reports, sent } = JSON.parse(text);
    const question = design.questions.find((each) => each.name === name);
    const listed = typeof reports === "object" && reports !== null && Number.isInteger(sent);
    if (question !== undefined && listed && sent >= Object.keys(reports).length) return { question, reports, sent };
  } catch {}
  throw new CollectError("The stored report is damaged. A new one would cost the privacy loss again.");
}

/**
 * The report of one person. The device draws one question and answers only that; all questions need an answer.
 *
 * `storage` keeps the question and its report, so that the same answer is sent as the same bytes again, from every tab;
 * pass `browserStorage()`. The report is stored before it is returned. Without a storage (null) every call draws anew and
 * the losses add up; a memoized survey refuses that. A report that did not arrive is sent again as it is, without
 * another call: each call counts as a report of the survey.
 */
export async function makeReport(
  design: ClientDesign,
  answers: Readonly<Record<string, Answer>>,
  storage: ReportStorage | null,
  source: RandomSource = SYSTEM_ENTROPY,
): Promise<Report> {
  checkDesign(design);
  if (design.memoized && storage === null) throw new CollectError("The survey is memoized and needs a storage.");
  if (!design.memoized && design.reports > 1 && storage !== null) {
    throw new CollectError("The survey draws every report anew; pass null as the storage.");
  }
  const checked = new Map(design.questions.map((each) => [each.name, checkedAnswer(each, answers[each.name])]));
  let made: Report | undefined;
  const make = (text: string | null): string => {
    const known = readKept(text, design);
    if (known.sent >= design.reports) {
      throw new CollectError("This device has made all its reports of the survey. More would count as more people.");
    }
    const question = known.question ?? design.questions[below(design.questions.length, source)]!;
    const answer = checked.get(question.name)!;
    const report = known.reports[answer] ?? drawn(design, question, answer, known, source);
    made = { survey: design.fingerprint, question: question.name, report };
    const reports = { ...known.reports, [answer]: report };
    return JSON.stringify({ question: question.name, reports, sent: known.sent + 1 });
  };
  if (storage === null) {
    make(null);
    return made!;
  }
  const text = await storage.keep(`sfumato.${design.fingerprint}`, make);
  if (made === undefined || typeof text !== "string") throw new CollectError("The storage keeps nothing.");
  return made;
}

function drawn(design: ClientDesign, question: Question, answer: number, known: Kept, source: RandomSource): string {
  if (design.memoized && Object.keys(known.reports).length >= (design.answers ?? 1)) {
    throw new CollectError("The answer changed more often than the survey's privacy loss covers. Nothing is sent.");
  }
  if (source === SYSTEM_ENTROPY) selfTest(question);
  const place = placeOf(question, answer, source);
  const bytes = randomizerOf(question).randomize(place, question.parameters, source);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The line of JSON that `sfumato collect estimate` reads. */
export const reportLine = (report: Report): string => `${JSON.stringify(report)}\n`;
