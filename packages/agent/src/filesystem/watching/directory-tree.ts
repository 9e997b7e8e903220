import type { DirectoryScan } from "./directory-scan.ts";

/** One watched directory. Names have one character per byte. */
export interface WatchedDirectory {
  readonly wd: number;
  name: string;
  /** Undefined for the root. */
  parent: WatchedDirectory | undefined;
  readonly children: Map<string, WatchedDirectory>;
  /** While what it holds is being found out. */
  scan: DirectoryScan | undefined;
}

/** The watched directories of one watcher, and under which name each is now. */
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
   * The directory of that number is `name` in `parent` now, whatever it was before. Undefined when it holds the parent
   * itself: the same directory seen twice, through a bind mount.
   */
  attach(wd: number, parent: WatchedDirectory, name: string): WatchedDirectory | undefined {
    const existing = this.#byWd.get(wd);
    if (existing) return this.move(existing, parent, name) ? existing : undefined;
    const directory = create(wd, name, parent);
    this.#byWd.set(wd, directory);
    parent.children.set(name, directory);
    return directory;
  }

  /** False, and nothing moved, when it would end up inside itself. */
  move(directory: WatchedDirectory, parent: WatchedDirectory, name: string): boolean {
    for (let above: WatchedDirectory | undefined = parent; above; above = above.parent) if (above === directory) return false;
    unlink(directory);
    directory.parent = parent;
    directory.name = name;
    parent.children.set(name, directory);
    return true;
  }

  /** Forgets it and all below, and ends what looks into them; returns their numbers. */
  detach(directory: WatchedDirectory): number[] {
    unlink(directory);
    const wds: number[] = [];
    const pending = [directory];
    for (let next = pending.pop(); next; next = pending.pop()) {
      // What moved elsewhere meanwhile is not below any more.
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

  /** Relative to the root, which is "". */
  pathOf(directory: WatchedDirectory): string {
    const names: string[] = [];
    for (let at = directory; at.parent; at = at.parent) names.push(at.name);
    return names.reverse().join("/");
  }
}

function create(wd: number, name: string, parent: WatchedDirectory | undefined): WatchedDirectory {
  return { wd, name, parent, children: new Map(), scan: undefined };
}

// A newer directory may have the name by now.
function unlink(directory: WatchedDirectory): void {
  if (directory.parent?.children.get(directory.name) === directory) directory.parent.children.delete(directory.name);
}
