import assert from "node:assert/strict";
import { test } from "node:test";
import { inner, readPart, writePart } from "../src/form-model.ts";

const PARTS = [{ name: "k-anonymity", definition: "", summary: "", docs: [], reference: "", main: "k", example: {} }];

test("a part is read in every way in which a recipe writes it", () => {
  assert.deepEqual(readPart("mondrian", PARTS), { name: "mondrian", values: {} });
  assert.deepEqual(readPart({ "k-anonymity": 5 }, PARTS), { name: "k-anonymity", values: { k: 5 } });
  assert.deepEqual(readPart({ "k-anonymity": { k: 5 } }, PARTS), { name: "k-anonymity", values: { k: 5 } });
  assert.deepEqual(readPart({ "k-anonymity": null }, PARTS), { name: "k-anonymity", values: {} });
});

test("a part without settings is written as its name", () => {
  assert.equal(writePart("mondrian", {}), "mondrian");
  assert.deepEqual(writePart("k-anonymity", { k: 5 }), { "k-anonymity": { k: 5 } });
});

test("a field that may be empty has the form of its value", () => {
  assert.equal(inner({ anyOf: [{ type: "integer" }, { type: "null" }], description: "d" }).type, "integer");
  assert.equal(inner({ anyOf: [{ type: "integer" }, { type: "number" }] }).type, "number");
  assert.deepEqual(inner({ anyOf: [{ enum: ["loss", "height"] }, { type: "object" }] }).enum, ["loss", "height"]);
});
