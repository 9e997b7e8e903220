import type { ConnectError, ServiceImpl } from "@connectrpc/connect";
import { isUuid } from "@skerry/wire";
import type { NodeService, SandboxSpec, VolumeMount, WriteVolumeFileRequest } from "@skerry/wire/node";
import { FakeFiles } from "./fake-files.ts";
import { rpcError } from "./fake-refusals.ts";

const MIB = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
const RESERVED = /^\/(proc|sys|dev|\.skerry)(\/|$)/;

export interface FakeVolume {
  readonly sizeBytes: number;
  readonly files: FakeFiles;
}

export type FakeVolumeMethod = "createVolume" | "deleteVolume";

/** The volumes of a fake node, with their files in memory. */
export class FakeVolumes {
  readonly held = new Map<string, FakeVolume>();
  readonly calls: { readonly method: FakeVolumeMethod; readonly volumeId: string }[] = [];
  /** What these calls fail with, before they do anything. */
  readonly refusals = new Map<FakeVolumeMethod, ConnectError>();
  /** Calls that hang until `release()`: before they do their work, or after it. */
  readonly hangs = new Map<FakeVolumeMethod, "before" | "after">();
  /** How many calls hang. */
  hanging = 0;
  #released = Promise.withResolvers<void>();
  /** The most bytes of an upload that were taken before anybody read on: shows whether it was streamed. */
  received = 0;
  /** Uploads stand still while this is set. */
  hold: Promise<void> | undefined;
  readonly #mountsOf: () => Iterable<readonly [sandboxId: string, mounts: readonly VolumeMount[]]>;

  constructor(mountsOf: () => Iterable<readonly [sandboxId: string, mounts: readonly VolumeMount[]]>) {
    this.#mountsOf = mountsOf;
  }

  /** Throws for mounts that no node takes. A sandbox that starts from layers needs all of its volumes. */
  assertMounts({ volumeMounts, imageId }: SandboxSpec): void {
    const paths = volumeMounts.map(({ path }) => path);
    for (const path of paths) {
      const isPath = /^(\/[^/\0]+)+$/.test(path) && !/\/\.\.?(\/|$)/.test(path) && !RESERVED.test(path);
      if (!isPath || paths.indexOf(path) !== paths.lastIndexOf(path))
        throw rpcError("invalid_argument", "a volume cannot be mounted there");
    }
    const missing = volumeMounts.find(({ volumeId }) => !this.held.has(volumeId));
    if (missing && imageId === "") throw rpcError("volume_missing", "a volume does not exist");
  }

  get service(): Pick<ServiceImpl<typeof NodeService>, VolumeCalls> {
    return {
      createVolume: ({ volumeId, sizeBytes }) =>
        this.#answer("createVolume", volumeId, () => {
          if (!isUuid(volumeId) || volumeId !== volumeId.toLowerCase()) throw rpcError("invalid_argument", "no volume has such an id");
          if (sizeBytes < 8 * MIB) throw rpcError("invalid_argument", "a volume has at least 8 MiB");
          if (this.held.has(volumeId)) return { created: false };
          this.held.set(volumeId, { sizeBytes: Number(sizeBytes), files: new FakeFiles(Number(sizeBytes)) });
          return { created: true };
        }),
      deleteVolume: ({ volumeId, force }) =>
        this.#answer("deleteVolume", volumeId, () => {
          if (!force && this.#mountedBy(volumeId).length > 0) throw rpcError("volume_in_use", "sandboxes mount the volume");
          return { existed: this.held.delete(volumeId) };
        }),
      listVolumes: () => ({ volumes: [...this.held].map(([id, volume]) => this.#listed(id, volume)) }),
      getVolumeUsage: ({ volumeId }) => {
        const volume = this.#get(volumeId);
        const totalBytes = BigInt(volume.sizeBytes);
        return { volume: this.#listed(volumeId, volume), usedBytes: BigInt(volume.files.usedBytes), totalBytes };
      },
      statVolumeEntry: ({ volumeId, path }) => ({ entry: this.#get(volumeId).files.stat(path) }),
      listVolumeDirectory: ({ volumeId, path, depth }) => {
        const files = this.#get(volumeId).files;
        return (async function* () {
          const entries = files.list(path, Math.max(depth, 1));
          for (let at = 0; at < entries.length; at += 100) yield { entries: entries.slice(at, at + 100) };
        })();
      },
      makeVolumeDirectory: ({ volumeId, path, metadata, force }) => ({
        entry: this.#get(volumeId).files.makeDirectory(path, metadata, force),
      }),
      removeVolumeEntry: ({ volumeId, path }) => {
        this.#get(volumeId).files.remove(path);
        return {};
      },
      setVolumeEntry: ({ volumeId, path, metadata }) => ({ entry: this.#get(volumeId).files.set(path, metadata) }),
      readVolumeFile: ({ volumeId, path, offset, length }) => {
        const files = this.#get(volumeId).files;
        return (async function* () {
          const { entry } = files.find(path);
          if (entry.type !== "file") throw rpcError("is_a_directory", `${path} is a directory`);
          yield { part: { case: "entry" as const, value: files.stat(path) } };
          const end = length === undefined ? entry.content.length : Number(offset + length);
          const content = entry.content.subarray(Number(offset), end);
          for (let at = 0; at < content.length; at += PIECE_BYTES) {
            yield { part: { case: "data" as const, value: content.subarray(at, at + PIECE_BYTES) } };
          }
        })();
      },
      writeVolumeFile: async (requests) => ({ entry: await this.#write(requests) }),
    };
  }

  async #write(requests: AsyncIterable<WriteVolumeFileRequest>) {
    const pieces: Uint8Array[] = [];
    let head: Extract<WriteVolumeFileRequest["part"], { case: "head" }>["value"] | undefined;
    for await (const { part } of requests) {
      if (part.case === "head") {
        head = part.value;
        this.#get(head.volumeId).files.assertWritable(head.path, head.force);
      } else if (part.case === "data") {
        await this.hold;
        this.received += part.value.length;
        pieces.push(part.value);
      } else if (part.case === "end" && head) {
        const { volumeId, path, metadata: given, force } = head;
        return this.#get(volumeId).files.write(path, new Uint8Array(Buffer.concat(pieces)), { given, force });
      }
    }
    throw rpcError("invalid_argument", "the content has no end");
  }

  /** Lets all hanging calls continue. */
  release(): void {
    this.#released.resolve();
    this.#released = Promise.withResolvers<void>();
  }

  async #answer<T>(method: FakeVolumeMethod, volumeId: string, work: () => T): Promise<T> {
    this.calls.push({ method, volumeId });
    const refusal = this.refusals.get(method);
    if (refusal) throw refusal;
    if (this.hangs.get(method) === "before") await this.#hang();
    const answer = work();
    if (this.hangs.get(method) === "after") await this.#hang();
    return answer;
  }

  async #hang(): Promise<void> {
    this.hanging += 1;
    try {
      await this.#released.promise;
    } finally {
      this.hanging -= 1;
    }
  }

  #get(volumeId: string): FakeVolume {
    const volume = this.held.get(volumeId);
    if (!volume) throw rpcError("volume_missing", "there is no such volume");
    return volume;
  }

  #mountedBy(volumeId: string): string[] {
    return [...this.#mountsOf()].flatMap(([id, mounts]) => (mounts.some((mount) => mount.volumeId === volumeId) ? [id] : []));
  }

  #listed(volumeId: string, { sizeBytes }: FakeVolume) {
    return { volumeId, sizeBytes: BigInt(sizeBytes), sandboxIds: this.#mountedBy(volumeId) };
  }
}

type VolumeCalls =
  | "createVolume"
  | "deleteVolume"
  | "listVolumes"
  | "getVolumeUsage"
  | "statVolumeEntry"
  | "listVolumeDirectory"
  | "makeVolumeDirectory"
  | "removeVolumeEntry"
  | "setVolumeEntry"
  | "readVolumeFile"
  | "writeVolumeFile";

/** Two lists of mounts are equal when they have the same volumes at the same paths. */
export function mountsKey(mounts: readonly VolumeMount[]): string {
  return mounts
    .map(({ volumeId, path }) => `${path}=${volumeId}`)
    .sort()
    .join("\n");
}
