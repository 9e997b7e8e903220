import type { Clock, Logger } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiTiming } from "../config.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { SandboxMoves } from "../sandboxes/lifecycle/moves.ts";
import type { LeftOvers } from "../sandboxes/reconcile/left-overs.ts";
import type { TemplateService } from "../templates/template-service.ts";
import type { BuildCredentials } from "./credentials.ts";

/** What carrying builds out depends on. */
export interface BuildDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly templates: TemplateService;
  readonly credentials: BuildCredentials;
  readonly moves: Pick<SandboxMoves, "owner">;
  readonly leftOvers: LeftOvers;
  readonly timing: ApiTiming;
  readonly config: { readonly agentVersion: string; readonly buildsAtOnce: number };
  readonly clock: Clock;
  readonly logger: Logger;
}
