// The shapes on the wire. A `title` makes a shape a named component of the served document.

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
    message: Type.String({ description: "What went wrong, for people." }),
    error_code: Type.Optional(Type.String({ description: "What went wrong, for programs, where there is more to tell than the status." })),
  },
  { title: "Error" },
);

export const SandboxIdParams = Type.Object({
  sandboxID: Type.String({ description: "The sandbox's id: `i` and 20 characters of `a-z` and `0-9`." }),
});

export const SandboxSchema = Type.Object(
  {
    templateID: Type.String({ description: "The template that it was made from." }),
    sandboxID: Type.String({ description: "The sandbox's id." }),
    clientID: Type.String({ description: "Always the same; older clients need it.", deprecated: true }),
    envdVersion: Type.String({ description: "The version of the API inside the sandbox." }),
    alias: Type.Optional(Type.String({ description: "The template's first name." })),
    envdAccessToken: Type.Optional(Type.String({ description: "The token that the API inside the sandbox asks for (`X-Access-Token`)." })),
    domain: Type.Optional(Type.String({ description: "The domain of the sandbox's addresses, where it is not the client's own setting." })),
  },
  { title: "Sandbox" },
);

const listedSandboxFields = {
  templateID: Type.String({ description: "The template that it was made from." }),
  sandboxID: Type.String({ description: "The sandbox's id." }),
  clientID: Type.String({ description: "Always the same; older clients need it.", deprecated: true }),
  envdVersion: Type.String({ description: "The version of the API inside the sandbox." }),
  alias: Type.Optional(Type.String({ description: "The template's first name." })),
  startedAt: DateTime("When it began to run, the last time."),
  endAt: DateTime("When its time is over; of a paused one, when it was paused."),
  cpuCount: Int32({ description: "Virtual CPUs.", minimum: 1 }),
  memoryMB: Int32({ description: "Memory in MiB.", minimum: 1 }),
  diskSizeMB: Int32({ description: "Disk in MiB; 0 when it has no limit of its own.", minimum: 0 }),
  metadata: Type.Optional(StringMap("What was given at its creation.")),
  state: Type.Union([Type.Literal("running"), Type.Literal("paused")], { description: "What it does now." }),
  volumeMounts: Type.Array(Type.Object({ name: Type.String(), path: Type.String() }), {
    description: "Always empty: volumes are not built yet.",
  }),
  envdUnresponsiveAtPause: Type.Optional(
    Type.Boolean({ description: "Only `true`: its agent was silent when it was paused, so that only its disk can be resumed." }),
  ),
};

export const ListedSandboxSchema = Type.Object(listedSandboxFields, { title: "ListedSandbox" });

export const SandboxDetailSchema = Type.Object(
  {
    ...listedSandboxFields,
    envdAccessToken: Type.Optional(Type.String({ description: "The token that the API inside the sandbox asks for." })),
    ...ShownOptionFields,
    domain: Type.Optional(Type.String({ description: "The domain of its addresses, where it is not the client's own setting." })),
    pauseMode: Type.Optional(
      Type.Union([Type.Literal("full"), Type.Literal("filesystem")], { description: "Of a paused one: whether its memory was kept." }),
    ),
    pauseReason: Type.Optional(
      Type.Union([Type.Literal("exited"), Type.Literal("memory"), Type.Literal("disk")], {
        description:
          "Of a paused one that nobody paused: it had ended by itself, and its files were kept; or (`disk`) it was filling the disk of its machine.",
      }),
    ),
    keptUntil: Type.Optional(Type.String({ format: "date-time", description: "Of such a one: when it ends if it is not resumed before." })),
    lifecycle: Type.Optional(
      Type.Object(
        { autoResume: Type.Boolean(), onTimeout: Type.Union([Type.Literal("kill"), Type.Literal("pause")]) },
        { description: "What happens when its time is over, and on traffic after that." },
      ),
    ),
  },
  { title: "SandboxDetail" },
);

export const SnapshotSchema = Type.Object(
  {
    snapshotID: Type.String({ description: "What to create sandboxes from: a template's name or id with its tag." }),
    names: Type.Array(Type.String(), { description: "The names that it was given, with the team's." }),
  },
  { title: "Snapshot" },
);
