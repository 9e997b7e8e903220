import { invalid } from "../../errors.ts";

/** Where the next page of a list begins: after this sandbox. */
export interface Cursor {
  readonly startedAt: number;
  readonly id: string;
}

const CURSOR = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)__([a-z0-9]{1,64})(__asc)?$/;

export function encodeCursor(cursor: Cursor, order: "asc" | "desc"): string {
  const text = `${new Date(cursor.startedAt).toISOString()}__${cursor.id}${order === "asc" ? "__asc" : ""}`;
  return Buffer.from(text).toString("base64url");
}

/** Refuses what is not a cursor, and one of the other direction: it would skip or repeat. */
export function parseCursor(token: string, order: "asc" | "desc"): Cursor {
  const match = CURSOR.exec(Buffer.from(token, "base64url").toString("utf8"));
  const startedAt = Date.parse(match?.[1] ?? "");
  const isAscending = match?.[3] !== undefined;
  if (!match?.[2] || Number.isNaN(startedAt) || isAscending !== (order === "asc")) throw invalid("Invalid next token");
  return { startedAt, id: match[2] };
}
