import type { MemoryImage } from "@skerry/runtime";
import type { AgentIdentity } from "../agent/agent-client.ts";
import type { SandboxMakeup } from "../containers/journal.privileged.ts";
import type { UnaskedEnd } from "../containers/unasked-ends.ts";

/**
 * A sandbox on disk. `pause`: it is what a paused sandbox is kept in, and its start uses it up. `snapshot`: any number of
 * sandboxes start from it. `template`: this node's own, of a template with its agent up and told nothing yet.
 */
export type ImageKind = "pause" | "snapshot" | "template";

export interface ImageRecord extends SandboxMakeup {
  readonly version: 1;
  readonly imageId: string;
  readonly kind: ImageKind;
  /** A paused sandbox's own area, which it goes on writing to; undefined once others share it (then it is a frozen one). */
  readonly area?: string;
  /** The slot whose user namespace owns the files of `area`: no other slot can use it. `idBase` is the host id of its root. */
  readonly owner?: { readonly slotNumber: number; readonly idBase: number };
  readonly allowInternetAccess: boolean;
  /** Whom the agent in the memory takes itself for; its token is what it asks for. */
  readonly identity: AgentIdentity;
  readonly memory?: StoredMemory;
  /** Of a paused sandbox: others are started from the same memory. */
  readonly isMemoryShared?: boolean;
  /** Its agent did not answer when this was written. */
  readonly agentUnresponsive: boolean;
  readonly createdAtMs: number;
  /** Nobody asked for this pause: the sandbox had ended by itself, for this reason, or it was filling the disk of this machine. */
  readonly kept?: UnaskedEnd | "disk";
}

export type StoredMemory = Omit<MemoryImage, "dir"> & { readonly files: readonly MemoryFile[] };

/** Length in bytes and CRC-32: enough against truncation and flipped bits, which is what disks do; nobody hostile writes here. */
export interface MemoryFile {
  readonly name: string;
  readonly size: number;
  readonly crc32: number;
}

/** Bytes that its memory takes on disk. */
export function memoryBytes(image: ImageRecord): number {
  return image.memory?.files.reduce((sum, file) => sum + file.size, 0) ?? 0;
}
