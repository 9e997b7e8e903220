import type { Clock, Logger } from "@skerry/base";
import type { Store } from "@skerry/store";
import type { ApiConfig, ApiTiming } from "../config.ts";
import type { Liveness } from "../liveness.ts";
import { AuditService } from "./audit-service.ts";
import { AuditTrail } from "./audit-trail.ts";

const DAY_MS = 24 * 3_600_000;

export interface Audit {
  readonly trail: AuditTrail;
  readonly service: AuditService;
}

export function createAudit(
  config: Pick<ApiConfig, "auditDays" | "maxAuditLines">,
  deps: {
    readonly store: Store;
    readonly liveness: Liveness;
    readonly run: string;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly timing: ApiTiming;
  },
): Audit {
  const { auditDays = 365, maxAuditLines = 10_000_000 } = config;
  const { audit } = deps.store;
  const trail = new AuditTrail({ ...deps, audit, keepMs: auditDays * DAY_MS, maxLines: maxAuditLines, lookMs: deps.timing.auditLookMs });
  return { trail, service: new AuditService({ audit, trail }) };
}
