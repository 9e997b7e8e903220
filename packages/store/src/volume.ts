import type { Selectable } from "kysely";
import type { VolumeTable } from "./volume-table.ts";

/** `creating`: its node may not have it yet. `deleting`: nobody sees it any more, and its node may still have it. */
export type VolumeState = "creating" | "ready" | "deleting";

export interface NewVolume {
  readonly id: string;
  readonly teamId: string;
  readonly name: string;
  /** The only node that has it. */
  readonly nodeId: string;
  readonly sizeMb: number;
  /** The API process that creates it. */
  readonly owner: string;
  readonly createdAt: number;
}

export interface Volume extends NewVolume {
  readonly state: VolumeState;
}

/** A volume in a sandbox, or in the sandboxes of a snapshot. */
export interface VolumeMount {
  readonly volumeId: string;
  readonly name: string;
  /** An absolute path. */
  readonly path: string;
}

export function volumeFrom(row: Selectable<VolumeTable>): Volume {
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    nodeId: row.node_id,
    sizeMb: row.size_mb,
    owner: row.owner,
    createdAt: row.created_at,
    state: row.state as VolumeState,
  };
}

/** The form in which mounts are stored; null for none. */
export function mountsText(mounts: readonly VolumeMount[]): string | null {
  return mounts.length === 0 ? null : JSON.stringify(mounts.map(({ volumeId, name, path }) => ({ volumeId, name, path })));
}

export function mountsFrom(text: string | null): readonly VolumeMount[] {
  return text === null ? [] : (JSON.parse(text) as VolumeMount[]);
}
