// Positions in the lists of tags. The text of a cursor means nothing to clients.

import { invalid } from "../../errors.ts";
import type { ServedTag, TagSort } from "../../templates/tag-service.ts";

const TAG_CURSOR = /^([a-z_]+):(\d{1,16}):([a-z0-9_.-]{1,128})$/;
const POSITION_CURSOR = /^below:(\d{1,9})$/;

export function encodeTagCursor(last: ServedTag, sort: TagSort): string {
  return encode(`${sort}:${last.assignedAt}:${last.tag}`);
}

/** Throws for text that is not a cursor, and for the cursor of another order. */
export function parseTagCursor(cursor: string, sort: TagSort): ServedTag {
  const [, of, assignedAt, tag] = TAG_CURSOR.exec(decode(cursor)) ?? [];
  if (of !== sort || tag === undefined) throw invalid("Invalid cursor");
  return { tag, assignedAt: Number(assignedAt) };
}

export function encodePositionCursor(position: number): string {
  return encode(`below:${position}`);
}

/** Throws for text that is not a cursor. */
export function parsePositionCursor(cursor: string): number {
  const [, position] = POSITION_CURSOR.exec(decode(cursor)) ?? [];
  if (position === undefined) throw invalid("Invalid cursor");
  return Number(position);
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64url");
}

function decode(cursor: string): string {
  return Buffer.from(cursor, "base64url").toString("utf8");
}
