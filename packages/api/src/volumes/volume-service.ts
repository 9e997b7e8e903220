// The volumes of teams. The order of a create matters: first the row, then the node, last `ready`. When it is interrupted, the row shows that
// the node may have the volume, and the reconciliation deletes it.

import { randomUUID } from "node:crypto";
import type { Clock, Logger } from "@skerry/base";
import type { Volume, VolumeRepository } from "@skerry/store";
import { publicError } from "../errors.ts";
import { volumeErrorFrom } from "../nodes/volume-error.ts";
import type { SandboxDeps } from "../sandboxes/deps.ts";
import { leastBusyNode } from "../sandboxes/placement.ts";
import type { VolumeDeletions } from "./volume-deletions.ts";
import type { VolumeAccess, VolumeTokens } from "./volume-tokens.ts";

export interface VolumeServiceDeps extends Pick<SandboxDeps, "store" | "nodes" | "limits" | "moves"> {
  readonly volumes: VolumeRepository;
  readonly deletions: VolumeDeletions;
  readonly tokens: VolumeTokens;
  /** The size of a volume for which none is given. */
  readonly sizeMb: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A volume, with a token for its content. */
export interface VolumeAndToken {
  readonly volume: Pick<Volume, "id" | "name" | "sizeMb">;
  readonly token: string;
}

export class VolumeService {
  readonly #deps: VolumeServiceDeps;
  constructor(deps: VolumeServiceDeps) {
    this.#deps = deps;
  }

  async create(
    teamId: string,
    { name, sizeMb = this.#deps.sizeMb }: { name: string; sizeMb?: number | undefined },
  ): Promise<VolumeAndToken> {
    const { store, nodes, volumes, limits, moves, tokens, clock, timeoutMs } = this.#deps;
    const node = await leastBusyNode({ store }, nodes.candidates(await store.nodes.closed()));
    if (!node) throw publicError("capacity_unavailable", "There is no machine for the volume now");
    const { nodeId } = node;
    const volume = { id: randomUUID(), teamId, name, nodeId, sizeMb, owner: moves.owner, createdAt: clock.now() };
    const added = await limits.admitVolume(teamId, (room) => volumes.add(volume, room));
    if (added.kind === "taken") throw publicError("invalid_argument", `Volume with name '${name}' already exists`);
    try {
      await node.client.createVolume({ volumeId: volume.id, sizeBytes: BigInt(sizeMb) * 1024n * 1024n }, { timeoutMs });
      if (!(await volumes.markReady(volume.id, clock.now()))) throw publicError("deadline_exceeded", "Creating the volume took too long");
    } catch (error) {
      await this.#giveUp(volume);
      throw volumeErrorFrom(error);
    }
    return { volume, token: tokens.make(volume.id, "write") };
  }

  /** The oldest first. */
  async list(teamId: string): Promise<readonly Volume[]> {
    return await this.#deps.volumes.list(teamId);
  }

  async get(teamId: string, id: string, access: VolumeAccess): Promise<VolumeAndToken> {
    const volume = await this.#deps.volumes.find(teamId, id);
    if (!volume) throw volumeNotFound();
    return { volume, token: this.#deps.tokens.make(id, access) };
  }

  /** Nobody sees the volume any more when this returns; its files are removed in the background. */
  async remove(teamId: string, id: string, { force }: { readonly force: boolean }): Promise<void> {
    const { volumes, deletions, clock } = this.#deps;
    const removed = await volumes.remove(teamId, id, { force, now: clock.now() });
    if (removed.kind === "missing") throw volumeNotFound();
    if (removed.kind === "removed") return deletions.begin(removed.volume);
    const { sandboxes, volume } = removed;
    const users = sandboxes === 1 ? "a sandbox mounts it" : `${sandboxes} sandboxes mount it`;
    throw publicError(
      "conflict",
      `Volume '${volume.name}' cannot be deleted: ${users}. Kill them first, also paused ones, or delete the volume with force=true`,
      { detailCode: "volume_mounted" },
    );
  }

  async #giveUp(volume: Pick<Volume, "id" | "nodeId">): Promise<void> {
    const { volumes, deletions, clock, logger } = this.#deps;
    try {
      if (await volumes.abandon(volume.id, clock.now())) deletions.begin(volume);
    } catch (error) {
      logger.warn({ err: error, volume_id: volume.id }, "a failed create of a volume could not be recorded; the reconciliation deletes it");
    }
  }
}

export function volumeNotFound(): Error {
  return publicError("not_found", "Volume not found");
}
