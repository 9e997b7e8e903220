// What one client watches: a directory, or a whole tree, in which each directory has its own watch in the kernel.

import { Code, ConnectError } from "@connectrpc/connect";
import { asError, errnoOf } from "@skerry/base";
import { EventType } from "@skerry/wire/filesystem";
import { IN, type InotifyEvent } from "../../native/inotify-event.ts";
import { LibcError } from "../../native/libc.ts";
import { appendName } from "../../paths.ts";
import { DirectoryScan } from "./directory-scan.ts";
import { DirectoryTree, type WatchedDirectory } from "./directory-tree.ts";
import type { EntryReader } from "./entry-reader.ts";
import { EventBuffer, type SharedMemory } from "./event-buffer.ts";
import { eventTypes, rootEventTypes, WATCHED } from "./event-types.ts";

/** Paths and names in here have one character per byte. */
export interface WatcherOptions {
  /** Absolute. */
  readonly root: string;
  readonly recursive: boolean;
  readonly includeEntry: boolean;
  /** Absolute paths that a recursive watcher skips. */
  readonly skipped: ReadonlySet<string>;
}

/** What a watcher needs from the owner of the inotify descriptor. */
export interface WatchSource {
  readonly entries: EntryReader;
  readonly memory: SharedMemory;
  subscribe(path: string, watcher: Watcher, mask: number): number;
  unsubscribe(wds: Iterable<number>, watcher: Watcher): void;
  scan(scan: DirectoryScan): void;
}

/** A directory with one of these errors is skipped: it was removed or replaced, or the agent may not read it. */
const SKIPPED: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "ENAMETOOLONG"]);

const LIMITS: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "the limit of watched directories is reached (fs.inotify.max_user_watches)"],
  ["EMFILE", "the limit of inotify instances is reached (fs.inotify.max_user_instances)"],
]);

export class Watcher {
  readonly buffer: EventBuffer;
  readonly #source: WatchSource;
  readonly #options: WatcherOptions;
  /** Undefined when the watcher has stopped watching. */
  #tree: DirectoryTree | undefined;
  #scans = 0;

  /** Throws LibcError when the root can't be watched. */
  constructor(source: WatchSource, options: WatcherOptions) {
    this.#source = source;
    this.#options = options;
    this.buffer = new EventBuffer(source.memory);
    // Symbolic links are followed here, and nowhere below.
    this.#tree = new DirectoryTree(source.subscribe(options.root, this, WATCHED));
    if (options.recursive) this.#scan(this.#tree.root, true);
  }

  /** Whether the watcher is still searching for directories to watch. */
  get isScanning(): boolean {
    return this.#tree !== undefined && this.#scans > 0;
  }

  /** `arrivals` are the second events of renames, by cookie. */
  handle(event: InotifyEvent, arrivals: ReadonlyMap<number, InotifyEvent>): void {
    const directory = this.#tree?.get(event.wd);
    if (!this.#tree || !directory) return;
    if (event.name !== "") this.#handleChild(this.#tree, directory, event, arrivals);
    else if (directory === this.#tree.root) this.#handleRoot(event.mask);
    else if (event.mask & IN.IGNORED) this.#forget(directory);
    else if (event.mask & IN.ATTRIB) this.#emit(this.#tree.pathOf(directory), EventType.CHMOD);
  }

  /** Stops watching. From now on every reader gets the error. */
  fail(error: ConnectError): void {
    this.buffer.fail(error);
    this.release();
  }

  /** Stops watching. Buffered events can still be fetched. */
  release(): void {
    if (!this.#tree) return;
    const tree = this.#tree;
    this.#tree = undefined;
    this.#source.unsubscribe(tree.detach(tree.root), this);
  }

  // After a move the root's new path is unknown, and whatever takes its place is a different directory. So both end the watcher.
  #handleRoot(mask: number): void {
    for (const type of rootEventTypes(mask)) this.#emit("", type);
    if (mask & (IN.DELETE_SELF | IN.MOVE_SELF | IN.UNMOUNT | IN.IGNORED)) this.release();
  }

  #handleChild(tree: DirectoryTree, directory: WatchedDirectory, event: InotifyEvent, arrivals: ReadonlyMap<number, InotifyEvent>): void {
    const { mask, name } = event;
    const isCreation = (mask & (IN.CREATE | IN.MOVED_TO)) !== 0;
    const path = appendName(tree.pathOf(directory), name);
    if (mask & (IN.MODIFY | IN.ATTRIB) && directory.scan?.isUnreported(name)) this.#emit(path, EventType.CREATE);
    // Report a rename twice rather than not at all: it may have replaced what the scan found.
    if (directory.scan && !directory.scan.isNews(name, (mask & IN.CREATE) !== 0)) return;
    for (const type of eventTypes(mask)) this.#emit(path, type);
    if (!this.#options.recursive || !(mask & IN.ISDIR)) return;
    const child = directory.children.get(name);
    if (child && mask & IN.MOVED_FROM) this.#depart(tree, child, arrivals.get(event.cookie));
    if (child && mask & IN.DELETE) this.#forget(child);
    if (isCreation) this.#watchChild(directory, name, false);
  }

  // If the directory moved within the tree, it keeps its watches under the new name, from this event on. Otherwise it is forgotten.
  #depart(tree: DirectoryTree, child: WatchedDirectory, arrival: InotifyEvent | undefined): void {
    const target = arrival && tree.get(arrival.wd);
    if (target && tree.move(child, target, arrival.name)) return;
    this.#forget(child);
  }

  #watchChild(parent: WatchedDirectory, name: string, isSilent: boolean): void {
    if (!this.#tree) return;
    const path = this.#absolute(appendName(this.#tree.pathOf(parent), name));
    if (this.#options.skipped.has(path)) return;
    let wd: number;
    try {
      wd = this.#source.subscribe(path, this, WATCHED | IN.DONT_FOLLOW);
    } catch (error) {
      if (!SKIPPED.has(errnoOf(error) ?? "")) this.fail(addError(path, error));
      return;
    }
    const directory = this.#tree.attach(wd, parent, name);
    if (directory) this.#scan(directory, isSilent);
  }

  #scan(directory: WatchedDirectory, isSilent: boolean): void {
    directory.scan?.cancel();
    const scan = new DirectoryScan({
      isSilent,
      path: () => this.#absolute(this.#pathOf(directory)),
      onFound: (name, found) => this.#found(directory, name, { ...found, isSilent }),
      onEnd: (error) => {
        this.#scans--;
        if (error !== undefined && !SKIPPED.has(errnoOf(error) ?? "")) this.fail(addError(this.#options.root, error));
      },
      onSettled: () => {
        if (directory.scan === scan) directory.scan = undefined;
      },
    });
    directory.scan = scan;
    this.#scans++;
    this.#source.scan(scan);
  }

  #found(directory: WatchedDirectory, name: string, found: { isDirectory: boolean; isNews: boolean; isSilent: boolean }): void {
    if (found.isNews) this.#emit(appendName(this.#pathOf(directory), name), EventType.CREATE);
    // A directory that an inotify event reported is watched already.
    if (found.isDirectory && (found.isNews || !directory.children.has(name))) this.#watchChild(directory, name, found.isSilent);
  }

  #forget(directory: WatchedDirectory): void {
    if (this.#tree) this.#source.unsubscribe(this.#tree.detach(directory), this);
  }

  #pathOf(directory: WatchedDirectory): string {
    return this.#tree?.pathOf(directory) ?? "";
  }

  #absolute(path: string): string {
    return appendName(this.#options.root, path);
  }

  #emit(path: string, type: EventType): void {
    const hasEntry = this.#options.includeEntry && type !== EventType.REMOVE && type !== EventType.RENAME;
    this.buffer.push({
      name: path === "" ? "." : Buffer.from(path, "latin1").toString("utf8"),
      type,
      entry: hasEntry ? this.#source.entries.read(this.#absolute(path)) : undefined,
    });
  }
}

/** `path` has one character per byte; the message has it as text. */
export function addError(path: string, error: unknown): ConnectError {
  const reason = (error instanceof LibcError && LIMITS.get(error.code)) || asError(error).message;
  return new ConnectError(`error adding path ${Buffer.from(path, "latin1").toString("utf8")} to watcher: ${reason}`, Code.Internal);
}
