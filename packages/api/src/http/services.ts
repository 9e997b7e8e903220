import type { Clock, Logger } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiConfig, ApiTiming } from "../config.ts";
import type { ImageDeletions } from "../sandboxes/images/image-deletions.ts";
import type { SandboxKills } from "../sandboxes/lifecycle/kills.ts";
import type { SandboxMoves } from "../sandboxes/lifecycle/moves.ts";
import type { LeftOvers } from "../sandboxes/reconcile/left-overs.ts";
import type { SandboxService } from "../sandboxes/service.ts";

/** What handlers work with. */
export interface ApiServices {
  readonly config: ApiConfig;
  readonly store: Store;
  readonly timing: ApiTiming;
  readonly sandboxes: SandboxService;
  readonly moves: SandboxMoves;
  readonly kills: SandboxKills;
  readonly images: ImageDeletions;
  readonly leftOvers: LeftOvers;
  /** The token that the sandbox's agent asks for. */
  readonly accessTokenOf: (sandboxId: string) => string;
  readonly clock: Clock;
  readonly logger: Logger;
}
