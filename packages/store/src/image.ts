import type { Selectable } from "kysely";
import type { ImageTable } from "./tables.ts";

/**
 * The purpose of an image. `pause`: it holds a paused sandbox. `snapshot`: a build starts sandboxes from it. `fork`: it is deleted when the
 * forks are up.
 */
export type ImageKind = "pause" | "snapshot" | "fork";

/** The node has a complete image only in `ready`. In the other states there may be remains to delete. */
export type ImageState = "creating" | "ready" | "deleting";

export interface NewImage {
  readonly id: string;
  readonly teamId: string;
  readonly nodeId: string;
  /** The sandbox of the image. The agent in the image's memory requires the token of this sandbox. */
  readonly sandboxId: string;
  readonly kind: ImageKind;
  /** The API process that takes the image. */
  readonly owner: string;
  /** Whether memory was requested; later, whether the image has memory according to its node. */
  readonly hasMemory: boolean;
  readonly createdAt: number;
}

export interface Image extends NewImage {
  readonly state: ImageState;
  readonly stateChangedAt: number;
  readonly sizeBytes: number;
}

export function imageRow(image: NewImage): Selectable<ImageTable> {
  return {
    id: image.id,
    team_id: image.teamId,
    node_id: image.nodeId,
    sandbox_id: image.sandboxId,
    kind: image.kind,
    state: "creating",
    state_changed_at: image.createdAt,
    owner: image.owner,
    has_memory: Number(image.hasMemory),
    size_bytes: 0,
    created_at: image.createdAt,
  };
}

export function imageFrom(row: Selectable<ImageTable>): Image {
  return {
    id: row.id,
    teamId: row.team_id,
    nodeId: row.node_id,
    sandboxId: row.sandbox_id,
    kind: row.kind as ImageKind,
    state: row.state as ImageState,
    stateChangedAt: row.state_changed_at,
    owner: row.owner,
    hasMemory: row.has_memory === 1,
    sizeBytes: row.size_bytes,
    createdAt: row.created_at,
  };
}
