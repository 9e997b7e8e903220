// The calls of a node about volumes, as tests make them.

import type { ChildNode } from "./child-node.ts";

const SIZE_BYTES = 16n * 1024n * 1024n;

export interface VolumeCalls {
  /** Whether it was created now. */
  create(volumeId: string): Promise<boolean>;
  /** Whether there was one. */
  delete(volumeId: string): Promise<boolean>;
  ids(): Promise<string[]>;
  write(volumeId: string, content: string, path?: string): Promise<void>;
  read(volumeId: string, path?: string): Promise<string>;
  /** The paths of all files and directories. */
  entries(volumeId: string): Promise<string[]>;
  /** The permission bits of all files and directories, by path. */
  modes(volumeId: string): Promise<Map<string, number>>;
}

/** `path` is `/f` by default. Volumes have 16 MiB. */
export function volumeCallsOf(node: () => ChildNode): VolumeCalls {
  return {
    create: async (volumeId) => (await node().client.createVolume({ volumeId, sizeBytes: SIZE_BYTES })).created,
    delete: async (volumeId) => (await node().client.deleteVolume({ volumeId })).existed,
    ids: async () => (await node().client.listVolumes({})).volumes.map(({ volumeId }) => volumeId),
    async write(volumeId, content, path = "/f") {
      const head = { volumeId, path, force: true };
      async function* parts() {
        yield { part: { case: "head" as const, value: head } };
        yield { part: { case: "data" as const, value: new Uint8Array(Buffer.from(content)) } };
        yield { part: { case: "end" as const, value: {} } };
      }
      await node().client.writeVolumeFile(parts());
    },
    async read(volumeId, path = "/f") {
      let text = "";
      for await (const { part } of node().client.readVolumeFile({ volumeId, path }))
        if (part.case === "data") text += Buffer.from(part.value).toString();
      return text;
    },
    entries: async (volumeId) => [...(await modesOf(node(), volumeId)).keys()].sort(),
    modes: (volumeId) => modesOf(node(), volumeId),
  };
}

async function modesOf({ client }: ChildNode, volumeId: string): Promise<Map<string, number>> {
  const modes = new Map<string, number>();
  for await (const { entries } of client.listVolumeDirectory({ volumeId, path: "/", depth: 9 }))
    for (const { path, mode } of entries) modes.set(path, mode);
  return modes;
}
