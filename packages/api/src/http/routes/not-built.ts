// Operations that are specified but not built yet. Each one answers 501 to authorised callers, so that nobody takes the answer for a missing
// sandbox. To build an operation, add a file for it below this folder and delete its row.

import { notBuilt } from "../../errors.ts";
import type { AuthScheme } from "../../keys/authenticate.ts";
import { defineOperation, type Operation, type OperationTag } from "../operation.ts";
import { ErrorSchema } from "../schemas.ts";

type Row = readonly [id: string, method: Operation["method"], path: string, tag: OperationTag, what: string, auth: readonly AuthScheme[]];

const KEY = ["apiKey"] as const;

const ROWS: readonly Row[] = [
  ["getSandboxMetrics", "GET", "/sandboxes/{sandboxID}/metrics", "sandboxes", "reading a sandbox's metrics", KEY],
  ["listSandboxMetrics", "GET", "/sandboxes/metrics", "sandboxes", "reading metrics of several sandboxes", KEY],
  ["getSandboxLogs", "GET", "/v2/sandboxes/{sandboxID}/logs", "sandboxes", "reading a sandbox's logs", KEY],
  ["getSandboxLogsV1", "GET", "/sandboxes/{sandboxID}/logs", "sandboxes", "reading a sandbox's logs", KEY],
  ["getTeamMetrics", "GET", "/teams/{teamID}/metrics", "teams", "reading a team's metrics", KEY],
  ["getTeamMaxMetrics", "GET", "/teams/{teamID}/metrics/max", "teams", "reading a team's metrics", KEY],
  ["listVolumes", "GET", "/volumes", "volumes", "volumes", KEY],
  ["createVolume", "POST", "/volumes", "volumes", "volumes", KEY],
  ["getVolume", "GET", "/volumes/{volumeID}", "volumes", "volumes", KEY],
  ["deleteVolume", "DELETE", "/volumes/{volumeID}", "volumes", "volumes", KEY],
];

export const NOT_BUILT: readonly Operation[] = ROWS.map(([id, method, path, tag, what, auth]) =>
  defineOperation({
    id,
    method,
    path,
    tag,
    summary: `Not built yet: ${what}`,
    auth,
    responses: { 501: { description: "Not built yet.", schema: ErrorSchema } },
    repeatable: false,
    handle: () => {
      throw notBuilt(what);
    },
  }),
);
