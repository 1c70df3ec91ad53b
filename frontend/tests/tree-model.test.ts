import assert from "node:assert/strict";
import { test } from "node:test";
import { fromRows, fromTaxonomy, move, paths, toTaxonomy } from "../src/tree-model.ts";

const TAXONOMY = { Europe: { North: ["Norway", "Sweden"], South: ["Italy"] }, Asia: ["Japan"], Atlantis: null };

test("a taxonomy that was read is written back unchanged", () => {
  assert.deepEqual(toTaxonomy(fromTaxonomy(TAXONOMY)), TAXONOMY);
  assert.deepEqual(toTaxonomy(fromTaxonomy(["F", "M"])), ["F", "M"]);
});

test("levels of any hierarchy become a tree, coarsest first", () => {
  const rows = [["02124", "0212*", "02***", "*"], ["02125", "0212*", "02***", "*"], ["90210", "9021*", "90***", "*"]];
  assert.deepEqual(toTaxonomy(fromRows(rows)), { "02***": { "0212*": ["02124", "02125"] }, "90***": { "9021*": ["90210"] } });
});

test("a value moves into a group and out of all groups, and exists once", () => {
  const moved = move(fromTaxonomy(TAXONOMY), ["Italy", "Atlantis"], ["Europe", "North"]);
  assert.deepEqual(toTaxonomy(moved), { Europe: { North: ["Norway", "Sweden", "Italy", "Atlantis"] }, Asia: ["Japan"] });
  assert.deepEqual(move(moved, ["Japan"], []).values, ["Japan"]);
  assert.equal(JSON.stringify(toTaxonomy(moved)).split("Italy").length, 2);
});

test("the menu of a value names every group by its path", () => {
  assert.deepEqual(paths(fromTaxonomy(TAXONOMY)).map((place) => place.label), ["no group", "Europe", "Europe › North", "Europe › South", "Asia"]);
});
