/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The last item when another page follows. */
  readonly last: T | undefined;
}

/** Makes a page of rows that were read with a limit of one more than the page holds. */
export function pageOf<T>(rows: readonly T[], limit: number): Page<T> {
  const items = rows.slice(0, limit);
  return { items, last: rows.length > limit ? items.at(-1) : undefined };
}
