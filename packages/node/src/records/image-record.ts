// The record of an image (`images/<id>/image.json`): a sandbox on disk.

import { type EarlierRecord, type RecordKind, type RecordOf, recordParser } from "@skerry/base/records";
import type { OciSpec } from "@skerry/runtime";
import { Type } from "typebox";
import { IDENTITY, MAKEUP, OPTIONS } from "./sandbox-record.ts";

/** Length in bytes and CRC-32. A checksum finds truncation and flipped bits; it does not protect against forgery. */
const MEMORY_FILE = Type.Object({ name: Type.String(), size: Type.Number(), crc32: Type.Number() });

const MEMORY = Type.Object({
  extraMemoryBytes: Type.Optional(Type.Number()),
  binary: Type.String(),
  cpuFeatures: Type.Array(Type.String()),
  /** Written by the runtime, and compared by it when the memory is restored. */
  spec: Type.Unsafe<OciSpec>(Type.Object({ mounts: Type.Array(Type.Object({})), linux: Type.Object({}) })),
  files: Type.Array(MEMORY_FILE),
});

export const IMAGE_KIND = {
  name: "image",
  version: 2,
  steps: {
    1: ({ allowInternetAccess, ...rest }: EarlierRecord) => ({ ...rest, version: 2, options: { allowInternetAccess } }),
  },
  schema: Type.Object({
    version: Type.Literal(2),
    ...MAKEUP,
    imageId: Type.String(),
    /**
     * `pause`: a paused sandbox; its start consumes the image. `snapshot`: any number of sandboxes start from it. `template`: made by
     * this node, of a template whose agent runs and has no identity yet.
     */
    kind: Type.Union([Type.Literal("pause"), Type.Literal("snapshot"), Type.Literal("template")]),
    /** A paused sandbox's own area, which it continues to write to. Absent once others share it: then it is a frozen area. */
    area: Type.Optional(Type.String()),
    /** The slot whose user namespace owns the files of `area`: no other slot can use them. `idBase` is the host id of its root. */
    owner: Type.Optional(Type.Object({ slotNumber: Type.Integer(), idBase: Type.Integer() })),
    options: OPTIONS,
    /** The identity that the agent in the memory has. It accepts the token of this identity. */
    identity: IDENTITY,
    memory: Type.Optional(MEMORY),
    /** Of a paused sandbox: other sandboxes are started from the same memory. */
    isMemoryShared: Type.Optional(Type.Boolean()),
    /** The agent did not answer when the image was written. */
    agentUnresponsive: Type.Boolean(),
    createdAtMs: Type.Number(),
    /** Nobody requested this pause. The sandbox had ended by itself, for this reason, or it filled the host's disk. */
    kept: Type.Optional(Type.Union([Type.Literal("exited"), Type.Literal("memory"), Type.Literal("disk")])),
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
