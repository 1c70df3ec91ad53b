/** Completion of SQL from the words of the public schema. */
const KEYWORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "COUNT(*)", "SUM(", "AVG(", "ORDER BY"];

/** The word before the cursor, and at most six words that complete it: those of the schema first. */
export function completions(sql: string, at: number, words: string[]): { typed: string; offered: string[] } {
  const typed = /\w+$/.exec(sql.slice(0, at))?.[0] ?? "";
  const fits = (word: string) => word.toLowerCase().startsWith(typed.toLowerCase()) && word !== typed;
  return { typed, offered: typed ? [...new Set([...words, ...KEYWORDS])].filter(fits).slice(0, 6) : [] };
}
