import type { Secret } from "@skerry/base";
import type { BlobStore } from "@skerry/blobs";
import type { ImageSettings } from "@skerry/builder";
import type { DiskLimit, LayerStore } from "@skerry/layers";
import type { Runtime } from "@skerry/runtime";
import type { SiteNetwork } from "@skerry/wire";

export interface NodeConfig {
  readonly nodeId: string;
  /** Four hex digits in the names of everything that this node creates on its host. */
  readonly instance: string;
  /** The node's own folder, a real path. */
  readonly dir: string;
  /** The folder of volumes, a real path. Default: `volumes` in `dir`. */
  readonly volumesDir?: string;
  /** The runtimes that are set up. The first one is the default. */
  readonly runtimes: readonly Runtime[];
  readonly layers: LayerStore;
  /** How the node enforces the sizes of sandbox disks. */
  readonly diskLimit: DiskLimit;
  /** Why the node cannot enforce the sizes, if the operator did not switch that off. */
  readonly diskLimitMissing?: string;
  /** Number of prepared disk areas for each recently used size. */
  readonly readyAreas: number;
  readonly agents: AgentTrees;
  /** IPv4 prefix for sandboxes, or undefined to choose a free one. */
  readonly networkPool: string | undefined;
  /** Whether sandboxes have IPv6. The host forwards it then. */
  readonly ipv6: boolean;
  /** IPv4 addresses of the name servers that sandboxes use. */
  readonly resolvers: readonly string[];
  /** Addresses and prefixes of private networks that sandboxes may reach. */
  readonly allowPrivate?: readonly string[];
  /** Most connections of one sandbox to the outside at once. */
  readonly maxConnections: number;
  /** Proxies and certificate authorities of the operator's site, for sandboxes. The URLs of proxies may contain credentials. */
  readonly site?: Secret<SiteNetwork>;
  /** How images are pulled for builds. */
  readonly images?: Omit<ImageSettings, "pullDir">;
  readonly pool: {
    /** Number of ready sandboxes for each recently used template. 0 switches the pool off. */
    readonly size: number;
    readonly memoryBudgetBytes: number;
    /** How long a sandbox settles before the image of its template is written. */
    readonly settleMs: number;
  };
  /** Absent: the node builds no templates. */
  readonly builds?: BuildsConfig;
  /** Number of network slots that are kept ready. */
  readonly readySlots: number;
  /** Delay before deleted files leave the trash, so that the deletion does not slow the next request down. Default 1000. */
  readonly emptyTrashAfterMs?: number;
}

export interface BuildsConfig {
  /** Most builds that run at the same time. */
  readonly most: number;
  /** Where uploaded files are. */
  readonly blobs: BlobStore;
  /** How long a cached step stays after its last use. */
  readonly cacheDays: number;
}

/** Each tree is in a folder of `dir` that is named after the tree's digest. */
export interface AgentTrees {
  readonly dir: string;
  /** The agent of new sandboxes. */
  readonly current: { readonly digest: string; readonly version: string };
  /** First process of every sandbox. */
  readonly command: readonly string[];
}
