import type { PlatformOwner } from "@skerry/setup/folder";

/** What was found and removed, by kind: `{ sandboxes: 2, mounts: 5, firewall: true }`. */
export type CleanupCounts = Readonly<Record<string, number | boolean>>;

/** What the composition root hands to the commands: the platform itself stays out of this package. */
export interface OperatorContext {
  readonly version: string;
  /** The checkout that this runs from. */
  readonly repoRoot: string;
  /** The script that runs `serve` when it is started with that argument. */
  readonly mainScript: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Runs the platform in this process; resolves after a clean stop. */
  serve(env: Record<string, string | undefined>): Promise<void>;
  /** Who owns what is in the database of the data folder's platform; undefined when nothing is. */
  readOwner(env: Record<string, string | undefined>): Promise<PlatformOwner | undefined>;
  /** Destroys everything on this machine that belongs to the data folder's platform. */
  cleanup(dataDir: string): Promise<CleanupCounts>;
}
