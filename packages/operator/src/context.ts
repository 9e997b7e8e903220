import type { PlatformOwner } from "@skerry/setup/folder";

/** What a cleanup removed, by kind: `{ sandboxes: 2, mounts: 5, firewall: true }`. */
export type CleanupCounts = Readonly<Record<string, number | boolean>>;

/** What services/skerry passes to the commands: everything that needs more than a node's folder of the platform. */
export interface OperatorContext {
  readonly version: string;
  /** The checkout that contains the running program. */
  readonly repoRoot: string;
  /** The script that runs the platform when it is started with the argument `serve`. */
  readonly mainScript: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Runs the platform in this process. Resolves after a clean stop. */
  serve(env: Record<string, string | undefined>): Promise<void>;
  /** The team and user that own the contents of the platform's database. Undefined when the database is empty. */
  readOwner(env: Record<string, string | undefined>): Promise<PlatformOwner | undefined>;
  /** Writes a consistent copy of the platform's database to a file, while it is in use. */
  copyDatabase(env: Record<string, string | undefined>, file: string): Promise<"sqlite" | "postgres">;
  /** Puts such a copy in the place of the empty database of a data folder, and gives what is in it to the node of this folder. */
  restoreDatabase(env: Record<string, string | undefined>, file: string): Promise<void>;
  /** Removes everything on this host that belongs to the data folder's platform, except the data. */
  cleanup(dataDir: string): Promise<CleanupCounts>;
}
