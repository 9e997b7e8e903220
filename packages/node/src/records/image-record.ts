// The record of an image (`images/<id>/image.json`): a sandbox on disk.
//
// To start elsewhere, an image needs its runtime, the layers and the agent's tree, and its memory needs the runtime's program and
// the features of the processor. The record lists them all, by digest where there is one. What only this host knows is in `local`.

import { type EarlierRecord, type RecordKind, type RecordOf, recordParser } from "@skerry/base/records";
import { type OciSpec, withoutPlace } from "@skerry/runtime";
import { Type } from "typebox";
import { IDENTITY, MAKEUP, OPTIONS, withEarlierParts } from "./sandbox-record.ts";

/** Length in bytes and CRC-32. A checksum finds truncation and flipped bits; it does not protect against forgery. */
const MEMORY_FILE = Type.Object({ name: Type.String(), size: Type.Number(), crc32: Type.Number() });

const MEMORY = Type.Object({
  /** What restoring takes on top of what the sandbox will hold. */
  extraMemoryBytes: Type.Optional(Type.Number()),
  /** File name of the runtime's program that wrote the memory. It ends in the first 12 digits of the program's SHA-512. */
  binary: Type.String(),
  /** Features of the processor that the guest may use. */
  cpuFeatures: Type.Array(Type.String()),
  /** The specification that the sandbox ran with, without paths of the host. gVisor restores memory with no other. */
  spec: Type.Unsafe<OciSpec>(Type.Object({ mounts: Type.Array(Type.Object({})), linux: Type.Object({}) })),
  files: Type.Array(MEMORY_FILE),
});

const LOCAL = Type.Object({
  /** A paused sandbox's own area, which it continues to write to. Absent once others share it: then it is a frozen area. */
  area: Type.Optional(Type.String()),
  /** Frozen areas above the layers, lowest first. */
  frozenAreas: Type.Array(Type.String()),
  /** The slot whose user namespace owns the files of `area`: no other slot can use them. `idBase` is the host id of its root. */
  owner: Type.Optional(Type.Object({ slotNumber: Type.Integer(), idBase: Type.Integer() })),
  /** Of a paused sandbox: other sandboxes are started from the same files of memory. */
  isMemoryShared: Type.Optional(Type.Boolean()),
});

export const IMAGE_KIND = {
  name: "image",
  version: 2,
  steps: { 1: separateLocal },
  schema: Type.Object({
    version: Type.Literal(2),
    ...MAKEUP,
    imageId: Type.String(),
    /**
     * `pause`: a paused sandbox; its start consumes the image. `snapshot`: any number of sandboxes start from it. `template`: made by
     * this node, of a template whose agent runs and has no identity yet.
     */
    kind: Type.Union([Type.Literal("pause"), Type.Literal("snapshot"), Type.Literal("template")]),
    options: OPTIONS,
    /** The identity that the agent in the memory has. It accepts the token of this identity. */
    identity: IDENTITY,
    memory: Type.Optional(MEMORY),
    /** The agent did not answer when the image was written. */
    agentUnresponsive: Type.Boolean(),
    createdAtMs: Type.Number(),
    /** Nobody requested this pause. The sandbox had ended by itself, for this reason, or it filled the host's disk. */
    kept: Type.Optional(Type.Union([Type.Literal("exited"), Type.Literal("memory"), Type.Literal("disk")])),
    local: LOCAL,
  }),
} as const satisfies RecordKind;

export type ImageRecord = RecordOf<typeof IMAGE_KIND>;
export type ImageKind = ImageRecord["kind"];
export type StoredMemory = NonNullable<ImageRecord["memory"]>;
export type MemoryFile = StoredMemory["files"][number];

export const parseImageRecord = recordParser(IMAGE_KIND);

/** Bytes that an image's memory takes on disk. */
export function memoryBytes(image: ImageRecord): number {
  return image.memory?.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
}

function separateLocal({ area, frozenAreas, owner, isMemoryShared, memory, ...rest }: EarlierRecord) {
  return {
    ...withEarlierParts(rest),
    version: 2,
    ...(memory === undefined ? {} : { memory: { ...memory, spec: withoutPlace(memory.spec) } }),
    local: {
      frozenAreas,
      ...(area === undefined ? {} : { area }),
      ...(owner === undefined ? {} : { owner }),
      ...(isMemoryShared === undefined ? {} : { isMemoryShared }),
    },
  };
}
