// Everything below a directory, down to a depth: each directory right before its content, names sorted by their bytes.

import { isUtf8 } from "node:buffer";
import { errnoOf } from "@skerry/base";
import { appendName } from "../../paths.ts";
import { type Child, type RawPath, readChildren } from "./children.ts";

export interface Place {
  /** The path as clients see it: U+FFFD replaces bytes that are not UTF-8. */
  readonly shown: string;
  readonly real: RawPath;
}

interface Level {
  readonly folder: Place;
  readonly children: readonly Child[];
  next: number;
}

/**
 * Yields batches, so that the caller can serve other requests in between. Symbolic links are listed and never followed. Only the
 * directories on the current path are held in memory, not the whole tree.
 */
export async function* walk(root: Place, options: { depth: number; batch: number }): AsyncGenerator<Place[]> {
  const levels: Level[] = [await open(root)];
  let batch: Place[] = [];
  for (let level = levels.at(-1); level; level = levels.at(-1)) {
    const child = level.children[level.next];
    level.next++;
    if (!child) {
      levels.pop();
      continue;
    }
    const place = placeOf(level.folder, child.bytes);
    batch.push(place);
    if (batch.length === options.batch) {
      yield batch;
      batch = [];
    }
    if (!child.isDirectory || levels.length >= options.depth) continue;
    const below = await openUnlessGone(place);
    if (below) levels.push(below);
  }
  if (batch.length > 0) yield batch;
}

async function open(folder: Place): Promise<Level> {
  return { folder, children: await readChildren(folder.real), next: 0 };
}

async function openUnlessGone(folder: Place): Promise<Level | undefined> {
  try {
    return await open(folder);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

const ASCII = /^[\0-\x7f]*$/;

function placeOf({ shown, real }: Place, bytes: string): Place {
  if (ASCII.test(bytes)) {
    const path = appendName(shown, bytes);
    return { shown: path, real: real === shown ? path : joinRaw(real, bytes) };
  }
  const name = Buffer.from(bytes, "latin1");
  const text = name.toString("utf8");
  const isText = typeof real === "string" && isUtf8(name);
  return { shown: appendName(shown, text), real: isText ? appendName(real, text) : joinRaw(real, name) };
}

function joinRaw(folder: RawPath, name: RawPath): RawPath {
  if (typeof folder === "string" && typeof name === "string") return appendName(folder, name);
  const end = folder.at(-1);
  const isClosed = end === "/" || end === 0x2f;
  return Buffer.concat([Buffer.from(folder), Buffer.from(isClosed ? "" : "/"), Buffer.from(name)]);
}
