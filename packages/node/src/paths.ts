import { join } from "node:path";

export interface SandboxPaths {
  readonly dir: string;
  readonly record: string;
  readonly bundle: string;
  readonly upper: string;
  readonly work: string;
  readonly root: string;
}

export interface NodePaths {
  readonly sandboxes: string;
  /** What waits for its files to be deleted. */
  readonly trash: string;
  readonly userns: string;
  readonly network: string;
  sandbox(id: string): SandboxPaths;
}

/** Where the node keeps what, below its own folder. */
export function nodePaths(dir: string): NodePaths {
  return {
    sandboxes: join(dir, "sandboxes"),
    trash: join(dir, "trash"),
    userns: join(dir, "userns"),
    network: join(dir, "network.json"),
    sandbox(id) {
      const own = join(dir, "sandboxes", id);
      return {
        dir: own,
        record: join(own, "sandbox.json"),
        bundle: join(own, "bundle"),
        upper: join(own, "upper"),
        work: join(own, "work"),
        root: join(own, "root"),
      };
    },
  };
}
