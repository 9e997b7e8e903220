import type { DirectoryScan } from "./directory-scan.ts";

/** One watched directory. Names have one character per byte. */
export interface WatchedDirectory {
  readonly wd: number;
  name: string;
  /** Undefined for the root. */
  parent: WatchedDirectory | undefined;
  readonly children: Map<string, WatchedDirectory>;
  /** Set while its content is being scanned. */
  scan: DirectoryScan | undefined;
}

/** The watched directories of one watcher, with their current names. */
export class DirectoryTree {
  readonly root: WatchedDirectory;
  readonly #byWd = new Map<number, WatchedDirectory>();

  constructor(rootWd: number) {
    this.root = create(rootWd, "", undefined);
    this.#byWd.set(rootWd, this.root);
  }

  get(wd: number): WatchedDirectory | undefined {
    return this.#byWd.get(wd);
  }

  wds(): Iterable<number> {
    return this.#byWd.keys();
  }

  /**
   * Makes the directory with this watch descriptor the child `name` of `parent`, whatever it was before. Undefined when it contains
   * the parent itself: then a bind mount shows the same directory twice.
   */
  attach(wd: number, parent: WatchedDirectory, name: string): WatchedDirectory | undefined {
    const existing = this.#byWd.get(wd);
    if (existing) return this.move(existing, parent, name) ? existing : undefined;
    const directory = create(wd, name, parent);
    this.#byWd.set(wd, directory);
    parent.children.set(name, directory);
    return directory;
  }

  /** Returns false and moves nothing if the directory would end up inside itself. */
  move(directory: WatchedDirectory, parent: WatchedDirectory, name: string): boolean {
    for (let above: WatchedDirectory | undefined = parent; above; above = above.parent) if (above === directory) return false;
    unlink(directory);
    directory.parent = parent;
    directory.name = name;
    parent.children.set(name, directory);
    return true;
  }

  /** Forgets the directory and everything below it, and cancels their scans. Returns their watch descriptors. */
  detach(directory: WatchedDirectory): number[] {
    unlink(directory);
    const wds: number[] = [];
    const pending = [directory];
    for (let next = pending.pop(); next; next = pending.pop()) {
      // This directory has moved elsewhere in the meantime.
      if (this.#byWd.get(next.wd) !== next) continue;
      this.#byWd.delete(next.wd);
      next.scan?.cancel();
      wds.push(next.wd);
      pending.push(...next.children.values());
    }
    return wds;
  }

  has(directory: WatchedDirectory): boolean {
    return this.#byWd.get(directory.wd) === directory;
  }

  /** Relative to the root, whose path is "". */
  pathOf(directory: WatchedDirectory): string {
    const names: string[] = [];
    for (let at = directory; at.parent; at = at.parent) names.push(at.name);
    return names.reverse().join("/");
  }
}

function create(wd: number, name: string, parent: WatchedDirectory | undefined): WatchedDirectory {
  return { wd, name, parent, children: new Map(), scan: undefined };
}

// Another directory may have the name by now.
function unlink(directory: WatchedDirectory): void {
  if (directory.parent?.children.get(directory.name) === directory) directory.parent.children.delete(directory.name);
}
