import type { Selectable } from "kysely";
import type { ImageTable } from "./tables.ts";

/**
 * What an image is for. `pause`: a sandbox is kept in it. `snapshot`: a build starts sandboxes from it.
 * `fork`: it is gone again when the forks are up.
 */
export type ImageKind = "pause" | "snapshot" | "fork";

/** Its node has it whole only in `ready`. In the others there may be something to clean up. */
export type ImageState = "creating" | "ready" | "deleting";

export interface NewImage {
  readonly id: string;
  readonly teamId: string;
  readonly nodeId: string;
  /** The sandbox that it is taken of, whose token the agent in its memory asks for. */
  readonly sandboxId: string;
  readonly kind: ImageKind;
  /** The control process that takes it. */
  readonly owner: string;
  /** Whether it is to have memory, until the node says whether it does. */
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
