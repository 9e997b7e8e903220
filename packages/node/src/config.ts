import type { DiskLimit, LayerStore } from "@skerry/layers";
import type { Runtime } from "@skerry/runtime";

export interface NodeConfig {
  readonly nodeId: string;
  /** 4 hex digits: names everything that this node makes on its host. */
  readonly instance: string;
  /** The node's own folder, a real path. */
  readonly dir: string;
  /** Those that work here; the first one is the default. */
  readonly runtimes: readonly Runtime[];
  readonly layers: LayerStore;
  /** How the disks of sandboxes are held to their size. */
  readonly diskLimit: DiskLimit;
  /** Why they can't be, although nobody said that they should not. */
  readonly diskLimitMissing?: string;
  /** Disk areas of each lately used size that are kept prepared. */
  readonly readyAreas: number;
  readonly agents: AgentTrees;
  /** IPv4 prefix for sandboxes, or undefined to pick a free one. */
  readonly networkPool: string | undefined;
  /** IPv4 addresses of the name servers that sandboxes use. */
  readonly resolvers: readonly string[];
  readonly pool: {
    /** Ready sandboxes of each lately used template; 0: none. */
    readonly size: number;
    readonly memoryBudgetBytes: number;
    /** How long a sandbox is left alone before the image of its template is taken. */
    readonly settleMs: number;
  };
  /** Network slots kept ready ahead of time. */
  readonly readySlots: number;
  /** How long deleted files wait in the trash, so that deleting them takes nothing from whoever was just answered. Default 1000. */
  readonly emptyTrashAfterMs?: number;
}

/** Each tree is in a folder of `dir` that is named after the tree's digest. */
export interface AgentTrees {
  readonly dir: string;
  /** The agent of new sandboxes. */
  readonly current: { readonly digest: string; readonly version: string };
  /** First process of every sandbox. */
  readonly command: readonly string[];
}
