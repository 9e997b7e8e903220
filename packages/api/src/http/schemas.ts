// Schemas that several operations share. A `title` makes a schema a named component of the served document.

import { Type } from "typebox";
import { ShownOptionFields } from "./sandbox-options.ts";

const MAX_INT32 = 2_147_483_647;

export const Int32 = (about: { description: string; minimum?: number; maximum?: number; default?: number }) =>
  Type.Integer({ format: "int32", maximum: MAX_INT32, ...about });

export const DateTime = (description: string) => Type.String({ format: "date-time", description });

/** `additionalProperties` rather than a pattern for the names: the pattern that means "any name" misses line breaks. */
export const StringMap = (description: string) =>
  Type.Unsafe<Record<string, string>>({ type: "object", additionalProperties: { type: "string" }, description });

export const ErrorSchema = Type.Object(
  {
    code: Int32({ description: "The HTTP status again." }),
    message: Type.String({ description: "What went wrong, in words." }),
    error_code: Type.Optional(Type.String({ description: "What went wrong, for programs, when the status alone does not say it." })),
  },
  { title: "Error" },
);

export const SandboxIdParams = Type.Object({
  sandboxID: Type.String({ description: "The sandbox's id: `i` and 20 characters of `a-z` and `0-9`." }),
});

export const SandboxSchema = Type.Object(
  {
    templateID: Type.String({ description: "The template that the sandbox was created from." }),
    sandboxID: Type.String({ description: "The sandbox's id." }),
    clientID: Type.String({ description: "A constant that older clients require.", deprecated: true }),
    envdVersion: Type.String({ description: "The version of the API inside the sandbox." }),
    alias: Type.Optional(Type.String({ description: "The template's first name." })),
    envdAccessToken: Type.Optional(Type.String({ description: "The token for the API inside the sandbox (`X-Access-Token`)." })),
    trafficAccessToken: Type.Optional(
      Type.String({
        description: "The token for the other ports of a sandbox without public traffic (`e2b-traffic-access-token`); absent for others.",
      }),
    ),
    domain: Type.Optional(
      Type.String({ description: "The domain of the sandbox's addresses, if clients should use it instead of their own setting." }),
    ),
  },
  { title: "Sandbox" },
);

const listedSandboxFields = {
  templateID: Type.String({ description: "The template that the sandbox was created from." }),
  sandboxID: Type.String({ description: "The sandbox's id." }),
  clientID: Type.String({ description: "A constant that older clients require.", deprecated: true }),
  envdVersion: Type.String({ description: "The version of the API inside the sandbox." }),
  alias: Type.Optional(Type.String({ description: "The template's first name." })),
  startedAt: DateTime("When the sandbox last started or resumed."),
  endAt: DateTime("When the timeout passes; for a paused sandbox, when it was paused."),
  cpuCount: Int32({ description: "Virtual CPUs.", minimum: 1 }),
  memoryMB: Int32({ description: "Memory in MiB.", minimum: 1 }),
  diskSizeMB: Int32({ description: "Disk size in MiB; 0 if the sandbox has no limit of its own.", minimum: 0 }),
  metadata: Type.Optional(StringMap("As given in the create request.")),
  state: Type.Union([Type.Literal("running"), Type.Literal("paused")], { description: "The current state." }),
  volumeMounts: Type.Array(Type.Object({ name: Type.String(), path: Type.String() }), {
    description: "The volumes of the sandbox.",
  }),
  envdUnresponsiveAtPause: Type.Optional(
    Type.Boolean({
      description: "Always `true` if present: the agent did not answer at the pause, so the sandbox can only be resumed from its disk.",
    }),
  ),
};

export const ListedSandboxSchema = Type.Object(listedSandboxFields, { title: "ListedSandbox" });

export const SandboxDetailSchema = Type.Object(
  {
    ...listedSandboxFields,
    envdAccessToken: Type.Optional(Type.String({ description: "The token for the API inside the sandbox." })),
    ...ShownOptionFields,
    domain: Type.Optional(
      Type.String({ description: "The domain of the sandbox's addresses, if clients should use it instead of their own setting." }),
    ),
    pauseMode: Type.Optional(
      Type.Union([Type.Literal("full"), Type.Literal("filesystem")], { description: "For a paused sandbox: whether its memory was kept." }),
    ),
    pauseReason: Type.Optional(
      Type.Union([Type.Literal("exited"), Type.Literal("memory"), Type.Literal("disk")], {
        description:
          "For a sandbox that the platform paused by itself: its processes had ended (`exited`), it ran out of memory (`memory`), or it was filling the host's disk (`disk`).",
      }),
    ),
    keptUntil: Type.Optional(
      Type.String({ format: "date-time", description: "For such a sandbox: when it is killed unless it is resumed first." }),
    ),
    lifecycle: Type.Optional(
      Type.Object(
        { autoResume: Type.Boolean(), onTimeout: Type.Union([Type.Literal("kill"), Type.Literal("pause")]) },
        { description: "What happens at the timeout, and on traffic after it." },
      ),
    ),
  },
  { title: "SandboxDetail" },
);

export const SnapshotSchema = Type.Object(
  {
    snapshotID: Type.String({ description: "The reference to create sandboxes from: a name or an id, with a tag." }),
    names: Type.Array(Type.String(), { description: "Its names, with the team's namespace." }),
  },
  { title: "Snapshot" },
);
