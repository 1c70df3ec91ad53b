/** Combinations of levels as data: their order in the picture, and what lies one level away. */

export interface LatticeNode { levels: number[]; meets: boolean; suppressed?: number; classes?: number; smallest?: number; loss?: number }
export interface Lattice { columns: string[]; low: number[]; high: number[]; rows: number; best: number[] | null; nodes: LatticeNode[]; words: Record<string, string[]> }

export const keyOf = (levels: number[]) => levels.join(",");

/** Nodes by the sum of their levels, from the most general to the most detailed, in a fixed order. */
export function rowsOf(nodes: LatticeNode[]): LatticeNode[][] {
  const rows = new Map<number, LatticeNode[]>();
  for (const node of nodes) {
    const height = node.levels.reduce((sum, level) => sum + level, 0);
    rows.set(height, [...(rows.get(height) ?? []), node]);
  }
  return [...rows.entries()].sort((a, b) => b[0] - a[0]).map(([, row]) => row);
}

/** The combination with one level more or less in a column; undefined beyond the hierarchy. */
export function neighbour(lattice: Lattice, levels: number[], column: number, step: 1 | -1): number[] | undefined {
  const level = (levels[column] ?? 0) + step;
  if (level < (lattice.low[column] ?? 0) || level > (lattice.high[column] ?? 0)) return undefined;
  return levels.map((old, place) => (place === column ? level : old));
}
