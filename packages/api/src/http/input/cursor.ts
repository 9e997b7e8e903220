import type { NewestFirstPage } from "@skerry/store";
import { Type } from "typebox";
import { invalid } from "../../errors.ts";

/** Largest and default number of items on a page. */
export const MAX_PAGE = 100;

/** The query fields of every list that has pages. */
export const PageFields = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: MAX_PAGE, description: "Largest number of items on the page." }),
  ),
  nextToken: Type.Optional(Type.String({ description: "The `X-Next-Token` of the previous page." })),
};

/** The last item of the previous page. The next page begins after it. */
export interface Cursor {
  readonly startedAt: number;
  readonly id: string;
}

const CURSOR = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)__([a-z0-9-]{1,64})(__asc)?$/;

export function encodeCursor(cursor: Cursor, order: "asc" | "desc"): string {
  const text = `${new Date(cursor.startedAt).toISOString()}__${cursor.id}${order === "asc" ? "__asc" : ""}`;
  return Buffer.from(text).toString("base64url");
}

/** Throws for text that is not a cursor, and for a cursor of the other order, which would skip or repeat items. */
export function parseCursor(token: string, order: "asc" | "desc"): Cursor {
  const match = CURSOR.exec(Buffer.from(token, "base64url").toString("utf8"));
  const startedAt = Date.parse(match?.[1] ?? "");
  const isAscending = match?.[3] !== undefined;
  if (!match?.[2] || Number.isNaN(startedAt) || isAscending !== (order === "asc")) throw invalid("Invalid next token");
  return { startedAt, id: match[2] };
}

/** The page that a query asks for, of a list that is ordered newest first. */
export function newestFirstOf(query: { readonly limit?: number; readonly nextToken?: string }): NewestFirstPage {
  const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken, "desc");
  return { limit: query.limit ?? MAX_PAGE, ...(after ? { after: { createdAt: after.startedAt, id: after.id } } : {}) };
}
