import type { Migration } from "kysely/migration";
import { init } from "./001-init.ts";
import { images } from "./002-images.ts";
import { processes } from "./003-processes.ts";
import { kept } from "./004-kept.ts";
import { options } from "./005-options.ts";
import { builds } from "./006-builds.ts";
import { templates } from "./007-templates.ts";
import { optionsChange } from "./009-options-change.ts";
import { keys } from "./010-keys.ts";
import { secrets } from "./011-secrets.ts";
import { links } from "./013-links.ts";
import { teams } from "./020-teams.ts";
import { limits } from "./025-limits.ts";
import { standing } from "./026-standing.ts";
import { events } from "./030-events.ts";
import { webhooks } from "./031-webhooks.ts";
import { metrics } from "./034-metrics.ts";
import { logs } from "./035-logs.ts";
import { suspended } from "./038-suspended.ts";
import { volumes } from "./040-volumes.ts";
import { egress } from "./042-egress.ts";
import { providerUsers } from "./044-provider-users.ts";
import { audit } from "./047-audit.ts";
import { networkLimits } from "./050-network-limits.ts";

/** In order, never edited after a release; a new step is a new file. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "001-init": init,
  "002-images": images,
  "003-processes": processes,
  "004-kept": kept,
  "005-options": options,
  "006-builds": builds,
  "007-templates": templates,
  "009-options-change": optionsChange,
  "010-keys": keys,
  "011-secrets": secrets,
  "013-links": links,
  "020-teams": teams,
  "025-limits": limits,
  "026-standing": standing,
  "030-events": events,
  "031-webhooks": webhooks,
  "034-metrics": metrics,
  "035-logs": logs,
  "038-suspended": suspended,
  "040-volumes": volumes,
  "042-egress": egress,
  "044-provider-users": providerUsers,
  "047-audit": audit,
  "050-network-limits": networkLimits,
};
