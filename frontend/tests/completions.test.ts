import assert from "node:assert/strict";
import { test } from "node:test";
import { completions } from "../src/completions.ts";

const WORDS = ["patients", "age", "admitted", "Sex"];

test("words of the schema come before keywords, whatever their case", () => {
  assert.deepEqual(completions("SELECT a", 8, WORDS), { typed: "a", offered: ["age", "admitted", "AVG("] });
  assert.deepEqual(completions("SELECT AVG(age) FROM PAT", 24, WORDS).offered, ["patients"]);
});

test("the word at the cursor counts, and a whole word is not offered again", () => {
  assert.equal(completions("SELECT se FROM patients", 9, WORDS).offered[0], "Sex");
  assert.deepEqual(completions("SELECT age", 10, WORDS).offered, []);
  assert.deepEqual(completions("SELECT ", 7, WORDS).offered, []);
});
