import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, neighbour, rowsOf } from "../src/lattice-model.ts";
import type { Lattice } from "../src/lattice-model.ts";

const NODES = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]].map((levels) => ({ levels, meets: levels[0] === 2 }));
const LATTICE: Lattice = { columns: ["zip", "age"], low: [0, 0], high: [2, 1], rows: 9, best: [2, 0], nodes: NODES, words: {} };

test("rows of the picture go from the most general combination to the most detailed one", () => {
  assert.deepEqual(rowsOf(NODES).map((row) => row.map((node) => keyOf(node.levels))), [["2,1"], ["1,1", "2,0"], ["0,1", "1,0"], ["0,0"]]);
});

test("a neighbour differs by one level in one column and stays in the hierarchy", () => {
  assert.deepEqual(neighbour(LATTICE, [1, 0], 0, 1), [2, 0]);
  assert.deepEqual(neighbour(LATTICE, [1, 0], 0, -1), [0, 0]);
  assert.equal(neighbour(LATTICE, [2, 0], 0, 1), undefined);
  assert.equal(neighbour(LATTICE, [2, 0], 1, -1), undefined);
});
