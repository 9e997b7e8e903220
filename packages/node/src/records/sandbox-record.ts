// The record of a container (`sandboxes/<id>/sandbox.json`): what its sandbox is made of, and what it holds on this host.

import { basename } from "node:path";
import { type EarlierRecord, type RecordKind, type RecordOf, recordParser } from "@skerry/base/records";
import { parseOptions, type SandboxOptions } from "@skerry/wire/node";
import { type Static, Type } from "typebox";

const VOLUMES = Type.Array(Type.Object({ volumeId: Type.String(), path: Type.String() }));

/** What every sandbox of a template has running: see the message of spec/node/node.proto. */
const START = Type.Object({
  command: Type.String(),
  ready: Type.String(),
  user: Type.String(),
  workdir: Type.String(),
  env: Type.Record(Type.String(), Type.String()),
});

export type StartOfTemplate = Static<typeof START>;

/** What a sandbox is made of, whether it runs, waits in the pool or is an image. Nothing in it depends on the host. */
export const MAKEUP = {
  runtime: Type.Union([Type.Literal("gvisor"), Type.Literal("runc")]),
  templateId: Type.String(),
  buildId: Type.String(),
  size: Type.Object({ cpuCount: Type.Number(), memoryMb: Type.Number(), diskSizeMb: Type.Number() }),
  /** Digests of the template's layers, lowest first. */
  layers: Type.Array(Type.String()),
  /** The tree of the agent, which is named after its digest. A process in an image has files of this tree open. */
  agent: Type.Object({ digest: Type.String(), version: Type.String() }),
  /** Of a template with a start command. Images that hold the files alone, because their caller wanted no memory, have none. */
  start: Type.Optional(START),
  /** The volumes that it mounts, by their paths. */
  volumes: Type.Optional(VOLUMES),
};

export const IDENTITY = Type.Object({
  sandboxId: Type.String(),
  templateId: Type.String(),
  envVars: Type.Record(Type.String(), Type.String()),
  accessToken: Type.String(),
  defaultUser: Type.String(),
  defaultWorkdir: Type.String(),
  memoryMb: Type.Number(),
  generation: Type.Optional(Type.String()),
});

/** What the caller chose for the sandbox. The schema of the options is the message of spec/node/node.proto. */
export const OPTIONS = Type.Refine(Type.Unsafe<SandboxOptions>(Type.Object({})), isOptions);

function isOptions(value: unknown): boolean {
  try {
    parseOptions(value);
    return true;
  } catch {
    return false;
  }
}

const SLOT = Type.Object({
  number: Type.Integer(),
  addresses: Type.Object({
    host: Type.String(),
    guest: Type.String(),
    ipv6: Type.Optional(Type.Object({ host: Type.String(), guest: Type.String() })),
  }),
  hostInterface: Type.String(),
  namespacePath: Type.String(),
  userNamespace: Type.Optional(Type.Object({ path: Type.String(), idBase: Type.Integer() })),
});

/** What sandbox records of version 2 and image records of version 1 have in other forms: the agent's tree by its path, and the one option. */
export function withEarlierParts({ agentDir, agentVersion, allowInternetAccess, ...rest }: EarlierRecord) {
  return { ...rest, agent: { digest: basename(agentDir), version: agentVersion }, options: { allowInternetAccess } };
}

export const SANDBOX_KIND = {
  name: "sandbox",
  version: 3,
  // Version 1 had neither areas nor containers: its sandboxes can't be adopted.
  steps: { 2: (record) => ({ ...withEarlierParts(record), version: 3 }) },
  schema: Type.Object({
    version: Type.Literal(3),
    ...MAKEUP,
    containerId: Type.String(),
    /** "" while it waits in the pool. */
    sandboxId: Type.String(),
    /**
     * `pooled`: ready, and not assigned to a sandbox. `pausing`, `snapshotting`: being written to `imageId`. When that image is
     * complete, it replaces the container, which is only to be released.
     */
    state: Type.Union([
      Type.Literal("creating"),
      Type.Literal("pooled"),
      Type.Literal("running"),
      Type.Literal("pausing"),
      Type.Literal("snapshotting"),
      Type.Literal("killing"),
    ]),
    /** The area that the sandbox writes to. */
    area: Type.String(),
    /** Frozen areas above the layers and below `area`, lowest first. */
    frozenAreas: Type.Array(Type.String()),
    slot: SLOT,
    cgroupPath: Type.String(),
    options: OPTIONS,
    identity: IDENTITY,
    /** While a snapshot is written: the area that the sandbox continues with. It is made before the point of no return. */
    successorArea: Type.Optional(Type.String()),
    /** The image that is being written, or that this container is being started from. */
    imageId: Type.Optional(Type.String()),
    /** The container is restored with the memory of that image. */
    isRestored: Type.Optional(Type.Boolean()),
    /** The sandbox was booted, and its start command has not been started in it yet. */
    startOwed: Type.Optional(Type.Literal(true)),
    /** Why its start, or its last snapshot, lost the memory that it was to have. */
    memoryLost: Type.Optional(Type.String()),
    /** Memory that the sandbox may use beyond its limit for now: see limits/extra-memory.ts. */
    extraMemoryBytes: Type.Optional(Type.Number()),
    createdAtMs: Type.Number(),
    /**
     * The sandbox's first process on the host, and when it started, in clock ticks since boot. The kernel reuses pids, so the pid
     * alone does not identify a process.
     */
    process: Type.Optional(Type.Object({ pid: Type.Integer(), startTime: Type.String() })),
    /** File name of the runtime's program that runs the sandbox. */
    binary: Type.Optional(Type.String()),
  }),
} as const satisfies RecordKind;

export type SandboxRecord = RecordOf<typeof SANDBOX_KIND>;
export type SandboxMakeup = Pick<SandboxRecord, keyof typeof MAKEUP>;

export const parseSandboxRecord = recordParser(SANDBOX_KIND);
