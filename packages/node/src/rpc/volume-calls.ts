import type { ServiceImpl } from "@connectrpc/connect";
import { PlatformError } from "@skerry/base";
import type { NodeService, WriteVolumeFileRequest } from "@skerry/wire/node";
import type { NodeConfig } from "../config.ts";
import { type Entry, statEntry } from "../volumes/entry-path.privileged.ts";
import { checkedMetadata, listDirectory, makeDirectory, removeEntry, setEntry } from "../volumes/volume-directories.privileged.ts";
import { volumeErrorOf } from "../volumes/volume-errors.ts";
import { openFile, readFrom, writeFile } from "../volumes/volume-files.privileged.ts";
import type { VolumeStore } from "../volumes/volume-store.privileged.ts";
import { encodeError, encodeErrors } from "./encode-errors.ts";

const ENTRIES_AT_ONCE = 500;

type VolumeCalls = Pick<
  ServiceImpl<typeof NodeService>,
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
  | "writeVolumeFile"
>;

/** The calls about volumes and their files. */
export function volumeCalls(config: NodeConfig, volumes: VolumeStore): VolumeCalls {
  const encoded = <T>(work: () => Promise<T>) => encodeErrors(config, work);
  const described = ({ volumeId, sizeBytes }: { volumeId: string; sizeBytes: number }) => {
    const { running, paused } = volumes.usersOf(volumeId);
    return { volumeId, sizeBytes: BigInt(sizeBytes), sandboxIds: [...running, ...paused] };
  };
  return {
    async createVolume({ volumeId, sizeBytes }) {
      return { created: await encoded(() => volumes.create(volumeId, Number(sizeBytes))) };
    },
    async deleteVolume({ volumeId, force }) {
      return { existed: await encoded(() => volumes.delete(volumeId, { force })) };
    },
    async listVolumes() {
      return { volumes: volumes.list().map(described) };
    },
    async getVolumeUsage({ volumeId }) {
      const { usedBytes, totalBytes } = await encoded(() => volumes.usage(volumeId));
      const volume = described({ volumeId, sizeBytes: volumes.sizeBytes(volumeId) });
      return { volume, usedBytes: BigInt(usedBytes), totalBytes: BigInt(totalBytes) };
    },
    async statVolumeEntry({ volumeId, path }) {
      return { entry: encodeEntry(await encoded(() => volumes.use(volumeId, (volume) => statEntry(volume, path)))) };
    },
    async *listVolumeDirectory({ volumeId, path, depth }) {
      const volume = await encoded(() => volumes.open(volumeId));
      try {
        let entries: ReturnType<typeof encodeEntry>[] = [];
        for await (const entry of listDirectory(volume, path, Math.max(1, depth))) {
          if (entries.push(encodeEntry(entry)) < ENTRIES_AT_ONCE) continue;
          yield { entries };
          entries = [];
        }
        yield { entries };
      } catch (error) {
        throw encodeError(config, volumeErrorOf(error));
      } finally {
        volume.close();
      }
    },
    async makeVolumeDirectory({ volumeId, path, metadata, force }) {
      const made = () => volumes.use(volumeId, (volume) => makeDirectory(volume, { path, metadata: checkedMetadata(metadata), force }));
      return { entry: encodeEntry(await encoded(made)) };
    },
    async removeVolumeEntry({ volumeId, path }) {
      await encoded(() => volumes.use(volumeId, (volume) => removeEntry(volume, path)));
      volumes.emptyTrashOf(volumeId);
      return {};
    },
    async setVolumeEntry({ volumeId, path, metadata }) {
      const set = () => volumes.use(volumeId, (volume) => setEntry(volume, path, checkedMetadata(metadata)));
      return { entry: encodeEntry(await encoded(set)) };
    },
    async *readVolumeFile({ volumeId, path, offset, length }) {
      const volume = await encoded(() => volumes.open(volumeId));
      try {
        const { entry, handle } = await openFile(volume, path);
        try {
          yield { part: { case: "entry", value: encodeEntry(entry) } };
          const most = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
          for await (const data of readFrom(handle, Number(offset), most)) yield { part: { case: "data", value: data } };
        } finally {
          await handle.close();
        }
      } catch (error) {
        throw encodeError(config, volumeErrorOf(error));
      } finally {
        volume.close();
      }
    },
    async writeVolumeFile(requests) {
      return { entry: encodeEntry(await encoded(() => write(volumes, requests))) };
    },
  };
}

async function write(volumes: VolumeStore, requests: AsyncIterable<WriteVolumeFileRequest>): Promise<Entry> {
  const parts = requests[Symbol.asyncIterator]();
  const { value: first } = await parts.next();
  if (first?.part.case !== "head") throw new PlatformError("invalid_argument", "the first message must have the head");
  const { volumeId, path, metadata, force } = first.part.value;
  const data = dataOf(parts);
  return volumes.use(volumeId, (volume) => writeFile(volume, { path, metadata: checkedMetadata(metadata), force, data }));
}

/** A caller that is gone may look like the end of its messages: only `end` makes the file complete. */
async function* dataOf(parts: AsyncIterator<WriteVolumeFileRequest>): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { value, done } = await parts.next();
    const part = done ? undefined : value.part;
    if (part?.case === "end") return;
    if (part?.case !== "data") throw new PlatformError("invalid_argument", "the messages ended before the end of the file");
    yield part.value;
  }
}

function encodeEntry({ size, ...rest }: Entry) {
  return { ...rest, size: BigInt(size) };
}
