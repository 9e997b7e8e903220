// The files of one volume of a fake node, in memory. No links and no devices: those come from inside of sandboxes.

import type { VolumeEntry, VolumeMetadata } from "@skerry/wire/node";
import { rpcError } from "./fake-refusals.ts";

export interface FakeEntry {
  type: "file" | "directory";
  mode: number;
  uid: number;
  gid: number;
  mtimeMs: number;
  content: Uint8Array;
}

type Given = Pick<VolumeMetadata, "uid" | "gid" | "mode">;

const USER_ID = 1000;

/** By path: "/" and all others without a "/" at the end. */
export class FakeFiles {
  readonly entries = new Map<string, FakeEntry>();
  readonly #sizeBytes: number;
  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
    this.entries.set("/", { ...newEntry("directory"), uid: USER_ID, gid: USER_ID, mode: 0o777 });
  }

  get usedBytes(): number {
    return [...this.entries.values()].reduce((sum, { content }) => sum + content.length, 0);
  }

  find(text: string): { path: string; entry: FakeEntry } {
    const path = pathFrom(text);
    for (const parent of parentsOf(path)) {
      const entry = this.entries.get(parent);
      if (!entry) throw rpcError("entry_missing", `${path} does not exist`);
      if (entry.type !== "directory") throw rpcError("not_a_directory", `${parent} is not a directory`);
    }
    const entry = this.entries.get(path);
    if (!entry) throw rpcError("entry_missing", `${path} does not exist`);
    return { path, entry };
  }

  list(text: string, depth: number): readonly Omit<VolumeEntry, "$typeName" | "$unknown">[] {
    const { path, entry } = this.find(text);
    if (entry.type !== "directory") throw rpcError("not_a_directory", `${path} is not a directory`);
    const start = path === "/" ? "/" : `${path}/`;
    const below = [...this.entries.keys()].filter((each) => each !== "/" && each.startsWith(start));
    return below
      .filter((each) => each.slice(start.length).split("/").length <= depth)
      .sort()
      .map((each) => encode(each, this.entries.get(each)));
  }

  stat(text: string) {
    const { path, entry } = this.find(text);
    return encode(path, entry);
  }

  makeDirectory(text: string, given: Given | undefined, force: boolean) {
    const path = pathFrom(text);
    const present = this.entries.get(path);
    if (present && (!force || present.type !== "directory")) throw rpcError("entry_exists", `${path} exists`);
    if (!present) {
      this.#prepareParent(path, given, force);
      this.entries.set(path, { ...newEntry("directory"), ...this.#metadata(path, given, 0o755) });
    }
    return this.stat(path);
  }

  remove(text: string): void {
    const { path } = this.find(text);
    if (path === "/") throw rpcError("path_invalid", "the root of a volume cannot be removed");
    for (const each of [...this.entries.keys()]) if (each === path || each.startsWith(`${path}/`)) this.entries.delete(each);
  }

  set(text: string, given: Given | undefined) {
    const { path, entry } = this.find(text);
    assertMode(given);
    for (const field of ["uid", "gid", "mode"] as const) entry[field] = given?.[field] ?? entry[field];
    return encode(path, entry);
  }

  assertWritable(text: string, force: boolean): void {
    const path = pathFrom(text);
    const present = this.entries.get(path);
    if (present?.type === "directory") throw rpcError("is_a_directory", `${path} is a directory`);
    if (present && !force) throw rpcError("entry_exists", `${path} exists`);
    this.#prepareParent(path, undefined, force, true);
  }

  write(text: string, content: Uint8Array, about: { readonly given: Given | undefined; readonly force: boolean }) {
    const path = pathFrom(text);
    this.assertWritable(path, about.force);
    const present = this.entries.get(path);
    if (this.usedBytes - (present?.content.length ?? 0) + content.length > this.#sizeBytes) {
      throw rpcError("volume_full", "the volume is full");
    }
    this.#prepareParent(path, undefined, about.force);
    const { uid, gid, mode } = { ...this.#metadata(path, about.given, 0o644), ...(present ? { ...present, ...set(about.given) } : {}) };
    this.entries.set(path, { ...newEntry("file"), uid, gid, mode, content });
    return this.stat(path);
  }

  #prepareParent(path: string, given: Given | undefined, force: boolean, checkOnly = false): void {
    for (const parent of parentsOf(path)) {
      const entry = this.entries.get(parent);
      if (entry && entry.type !== "directory") throw rpcError("not_a_directory", `${parent} is not a directory`);
      if (entry) continue;
      if (!force) throw rpcError("entry_missing", `${parent} does not exist`);
      if (!checkOnly) this.entries.set(parent, { ...newEntry("directory"), ...this.#metadata(parent, given, 0o755) });
    }
  }

  #metadata(path: string, given: Given | undefined, mode: number): { uid: number; gid: number; mode: number } {
    assertMode(given);
    const parent = this.entries.get(parentsOf(path).at(-1) ?? "/");
    return { uid: parent?.uid ?? 0, gid: parent?.gid ?? 0, mode, ...set(given) };
  }
}

function set({ uid, gid, mode }: Given = {}): Partial<Record<"uid" | "gid" | "mode", number>> {
  return { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }), ...(mode === undefined ? {} : { mode }) };
}

function assertMode(given: Given | undefined): void {
  if ((given?.mode ?? 0) > 0o7777) throw rpcError("invalid_argument", "a mode has at most the bits 07777");
}

function newEntry(type: FakeEntry["type"]): FakeEntry {
  return { type, mode: 0, uid: 0, gid: 0, mtimeMs: Date.now(), content: new Uint8Array() };
}

function pathFrom(text: string): string {
  const parts = text.split("/").filter((part) => part !== "" && part !== ".");
  if (text.includes("\0") || parts.includes("..")) throw rpcError("path_invalid", "the path is not valid");
  return `/${parts.join("/")}`;
}

/** Outermost first. */
function parentsOf(path: string): readonly string[] {
  const parts = path.split("/").slice(1, -1);
  return path === "/" ? [] : ["/", ...parts.map((_, at) => `/${parts.slice(0, at + 1).join("/")}`)];
}

function encode(path: string, entry: FakeEntry = newEntry("file")): Omit<VolumeEntry, "$typeName" | "$unknown"> {
  const { type, mode, uid, gid, mtimeMs, content } = entry;
  const name = path.split("/").at(-1) ?? "";
  return { name, type, path, size: BigInt(content.length), mode, uid, gid, atimeMs: mtimeMs, mtimeMs, ctimeMs: mtimeMs };
}
