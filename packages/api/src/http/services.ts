import type { Clock, Logger } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiConfig } from "../config.ts";
import type { SandboxService } from "../sandboxes/service.ts";

/** What handlers work with. */
export interface ApiServices {
  readonly config: ApiConfig;
  readonly store: Store;
  readonly sandboxes: SandboxService;
  /** The token that the sandbox's agent asks for. */
  readonly accessTokenOf: (sandboxId: string) => string;
  readonly clock: Clock;
  readonly logger: Logger;
}
