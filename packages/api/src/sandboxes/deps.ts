import type { Clock, Logger, Secret } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiConfig, ApiTiming } from "../config.ts";
import type { StartCounts } from "../metrics/start-counts.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { SandboxSecretsSource } from "../secrets/sandbox-secrets.ts";
import type { TeamLimits } from "../teams/team-limits.ts";
import type { TemplateService } from "../templates/template-service.ts";
import type { VolumeDeletions } from "../volumes/volume-deletions.ts";
import type { ImageDeletions } from "./images/image-deletions.ts";
import type { SandboxKills } from "./lifecycle/kills.ts";
import type { SandboxMoves } from "./lifecycle/moves.ts";
import type { ShutdownGate } from "./lifecycle/suspension.ts";
import type { GivenUp } from "./reconcile/given-up.ts";
import type { LeftOvers } from "./reconcile/left-overs.ts";

/** The dependencies of the operations on sandboxes. */
export interface SandboxDeps {
  readonly config: Pick<ApiConfig, "agentVersion">;
  readonly timing: ApiTiming;
  readonly store: Store;
  readonly templates: TemplateService;
  readonly nodes: Nodes;
  readonly limits: TeamLimits;
  readonly moves: SandboxMoves;
  readonly kills: SandboxKills;
  readonly images: ImageDeletions;
  readonly leftOvers: LeftOvers;
  readonly volumes: VolumeDeletions;
  readonly givenUp: GivenUp;
  readonly starts: StartCounts;
  readonly gate: ShutdownGate;
  readonly tokenSeed: Secret;
  readonly secrets: SandboxSecretsSource;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The caller. An operation finds only the sandboxes of this team. */
export interface Acting {
  readonly teamId: string;
  /** The actor in the journal: `key:<id>`, `admin`, `traffic`, `platform`. */
  readonly actor: string;
}
