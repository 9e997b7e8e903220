// The request to create a sandbox: its schema, and the checks that a schema cannot express.

import { type Static, Type } from "typebox";
import { invalid, validationError } from "../../errors.ts";
import { IngressFields, OptionFields, OutgoingFields, optionsFrom } from "../sandbox-options.ts";
import { Int32, StringMap } from "../schemas.ts";
import type { ProxyRules } from "./egress-proxy.ts";

const optional = Type.Optional;
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

/** Bounds the size of lists, which contain the metadata of each sandbox. */
const MAX_METADATA_KIB = 64;
/** The agent receives the variables in one message of at most 4 MiB. */
const MAX_ENV_VARS_KIB = 1024;

const NetworkSchema = Type.Object(
  {
    ...IngressFields,
    ...OutgoingFields,
  },
  { description: "How the sandbox is reached, and what it may reach." },
);

const options = {
  templateID: Type.String({
    description: "The template or snapshot to start from: an id, or a name as `[namespace/]name[:tag]`. The tag may be the id of a build.",
  }),
  autoPause: optional(Type.Boolean({ description: "Pause the sandbox at its timeout instead of killing it.", default: false })),
  autoPauseMemory: optional(Type.Boolean({ description: "Whether the pause at the timeout keeps the memory.", default: true })),
  autoResume: optional(
    Type.Object({ enabled: Type.Boolean() }, { description: "Whether traffic resumes the sandbox when it is paused with its memory." }),
  ),
  ...OptionFields,
  network: optional(NetworkSchema),
  metadata: optional(StringMap("Names and values to find the sandbox by. They mean nothing to the platform. At most 64 KiB as JSON.")),
  envVars: optional(StringMap("Environment variables of every process in the sandbox. At most 1 MiB as JSON.")),
  mcp: optional(Type.Unknown({ description: "Accepted and ignored." })),
  iam: optional(nullable(Type.Object({}, { description: "Workload tokens, which are not available: a create with them is refused." }))),
  volumeMounts: optional(
    Type.Array(Type.Object({ name: Type.String(), path: Type.String() }), {
      description:
        "Volumes of the team, each at an absolute path. Without this field, a sandbox of one of the team's snapshots has the snapshot's volumes.",
    }),
  ),
};

const timeout = (seconds: number) =>
  optional(Int32({ description: "Timeout in seconds, counted from the answer.", minimum: 0, default: seconds }));

export const NewSandboxV1Schema = Type.Object(
  {
    ...options,
    timeout: timeout(15),
    secure: optional(Type.Boolean({ description: "Ignored: every sandbox requires its token.", deprecated: true })),
  },
  { title: "NewSandboxV1" },
);

export const NewSandboxSchema = Type.Object({ ...options, timeout: timeout(300) }, { title: "NewSandbox" });

export type NewSandboxBody = Static<typeof NewSandboxV1Schema>;

/** Throws for contradictory options, and for text that cannot be stored. */
export function assertNewSandbox(body: NewSandboxBody, proxies: ProxyRules): void {
  if (body.timeout === 0) throw invalid("Timeout must be greater than 0");
  if (body.autoPauseMemory === false && body.autoPause !== true) {
    throw invalid("autoPauseMemory=false only applies when autoPause is true.");
  }
  if (body.autoPauseMemory === false && body.autoResume?.enabled) {
    throw invalid("autoPauseMemory=false cannot be combined with autoResume.");
  }
  assertSize("metadata", body.metadata, MAX_METADATA_KIB);
  assertTexts("metadata", body.metadata);
  assertSize("envVars", body.envVars, MAX_ENV_VARS_KIB);
  assertTexts("envVars", body.envVars);
  for (const name of Object.keys(body.envVars ?? {})) {
    if (name === "" || name.includes("=")) throw validationError("body/envVars: a name must not be empty or contain '='");
  }
  if (body.iam !== undefined && body.iam !== null) throw invalid("Sandbox IAM workload tokens are not available for your team.");
  // Throws for rules that cannot be met.
  optionsFrom(body, proxies);
}

/** Measured as JSON, the form in which the value is stored and sent. */
function assertSize(field: string, map: Readonly<Record<string, string>> | undefined, maxKib: number): void {
  if (Buffer.byteLength(JSON.stringify(map ?? {})) > maxKib * 1024) {
    throw validationError(`body/${field} must not be larger than ${maxKib} KiB`);
  }
}

function assertTexts(field: string, map: Readonly<Record<string, string>> | undefined): void {
  for (const text of Object.entries(map ?? {}).flat()) {
    if (text.includes("\0")) throw validationError(`body/${field}: text must not contain NUL`);
    if (!text.isWellFormed()) throw validationError(`body/${field}: text must be valid Unicode`);
  }
}
