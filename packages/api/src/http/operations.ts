import { NOT_BUILT } from "./not-built.ts";
import type { Operation } from "./operation.ts";
import { connectSandbox } from "./routes/connect-sandbox.ts";
import { connectSandboxV1 } from "./routes/connect-sandbox-v1.ts";
import { createSandbox } from "./routes/create-sandbox.ts";
import { createSandboxV1 } from "./routes/create-sandbox-v1.ts";
import { getHealth } from "./routes/get-health.ts";
import { getSandbox } from "./routes/get-sandbox.ts";
import { killSandbox } from "./routes/kill-sandbox.ts";
import { listSandboxes } from "./routes/list-sandboxes.ts";
import { listSandboxesV1 } from "./routes/list-sandboxes-v1.ts";
import { listTeams } from "./routes/list-teams.ts";
import { listTemplates } from "./routes/list-templates.ts";
import { refreshSandbox } from "./routes/refresh-sandbox.ts";
import { setSandboxTimeout } from "./routes/set-sandbox-timeout.ts";

/** Everything that the public API has, in the order of the served document. */
export const OPERATIONS: readonly Operation[] = [
  createSandbox,
  connectSandbox,
  listSandboxes,
  getSandbox,
  killSandbox,
  setSandboxTimeout,
  refreshSandbox,
  createSandboxV1,
  connectSandboxV1,
  listSandboxesV1,
  listTemplates,
  listTeams,
  getHealth,
  ...NOT_BUILT,
];
