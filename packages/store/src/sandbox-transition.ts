// One change of a sandbox's state: the compare-and-set, the change to the image, the entry in the journal, and the event
// for its team, in one transaction.

import type { Kysely } from "kysely";
import { appendLog } from "./append-log.ts";
import type { DialectName } from "./dialect/lock-team.ts";
import { recordEvents } from "./events/record-event.ts";
import { eventOfChange } from "./events/sandbox-events.ts";
import { imageRow, type NewImage } from "./image.ts";
import { lifecycleLine } from "./lifecycle-line.ts";
import { assertRoomForSandbox, assertRoomForSnapshot, type SandboxLimits } from "./limit-checks.ts";
import {
  changedColumns,
  type EndReason,
  LISTED_AS,
  type NewSandbox,
  type PauseReason,
  type Sandbox,
  type SandboxChanges,
  type SandboxState,
  sandboxFrom,
  sandboxRow,
} from "./sandbox.ts";
import type { Database } from "./tables.ts";
import { insertMounts } from "./volume-mounts.ts";

export interface SandboxTransition {
  readonly from: SandboxState;
  readonly to: SandboxState;
  /** For the journal: the event, the actor, and the reason if there is one. */
  readonly event: string;
  readonly actor: string;
  /** For an end it is an `EndReason`, which becomes the reason of the end. */
  readonly reason?: TransitionReason;
  readonly now: number;
  /** Applies only when the sandbox still has this version. */
  readonly version?: number;
  readonly set?: SandboxChanges;
  readonly image?: ImageChange;
  /** Applies only while the team has room for one more running sandbox. Throws PlatformError("limit_reached") otherwise. */
  readonly limits?: SandboxLimits;
  /** Applies only while the team has fewer snapshots than this. Throws PlatformError("limit_reached") otherwise. */
  readonly maxSnapshots?: number;
}

export type TransitionReason = EndReason | PauseReason | "shutdown" | `memory_lost: ${string}`;

export type ImageChange =
  /** The image is about to be taken. */
  | { readonly kind: "begin"; readonly image: NewImage }
  /** The node has the image. */
  | { readonly kind: "keep"; readonly id: string; readonly hasMemory: boolean; readonly sizeBytes: number }
  /** The node wrote the image by itself. The image that the sandbox was to be paused in, `instead`, is dropped. */
  | { readonly kind: "take over"; readonly image: NewImage; readonly sizeBytes: number; readonly instead?: string }
  /** The image is not needed any more, and the node may still have it. */
  | { readonly kind: "drop"; readonly id: string };

export interface Inserted {
  readonly actor: string;
  readonly limits?: SandboxLimits;
}

export async function insertSandbox(tx: Kysely<Database>, dialect: DialectName, sandbox: NewSandbox, about: Inserted): Promise<void> {
  const { limits } = about;
  if (limits) await assertRoomForSandbox(tx, dialect, { teamId: sandbox.teamId, limits, size: sandbox, hasNewDisk: true });
  await insertMounts(tx, dialect, sandbox);
  await tx.insertInto("sandboxes").values(sandboxRow(sandbox)).execute();
  await tx
    .insertInto("sandbox_events")
    .values({
      sandbox_id: sandbox.id,
      version: 1,
      at: sandbox.createdAt,
      from_state: null,
      to_state: "starting",
      event: "create",
      reason: null,
      actor: about.actor,
    })
    .execute();
}

/** Returns undefined when the sandbox was not in the expected state or version. */
export async function changeState(
  tx: Kysely<Database>,
  dialect: DialectName,
  change: SandboxTransition & { readonly id: string },
): Promise<Sandbox | undefined> {
  if (change.limits || change.maxSnapshots !== undefined) await assertRoom(tx, dialect, change);
  const row = await compareAndSet(tx, change);
  if (!row) return undefined;
  await tx
    .insertInto("sandbox_events")
    .values({
      sandbox_id: change.id,
      version: row.version,
      at: change.now,
      from_state: change.from,
      to_state: change.to,
      event: change.event,
      reason: change.reason ?? null,
      actor: change.actor,
    })
    .execute();
  const event = eventOfChange(row, change);
  if (event) await recordEvents(tx, [event]);
  if (change.image) await changeImage(tx, change.image, change.now);
  const line = lifecycleLine({ event: change.event, reason: change.reason ?? null, endReason: row.end_reason, now: change.now });
  if (line) await appendLog(tx, { sandboxId: change.id, teamId: row.team_id }, [line]);
  if (change.to === "ended") {
    await tx.deleteFrom("sandbox_links").where("sandbox_id", "=", change.id).execute();
    if (row.volume_mounts !== null) await tx.deleteFrom("volume_mounts").where("sandbox_id", "=", change.id).execute();
  }
  return sandboxFrom(row);
}

async function compareAndSet(tx: Kysely<Database>, change: SandboxTransition & { readonly id: string }) {
  const ends = change.to === "killing" || change.to === "ended";
  let update = tx
    .updateTable("sandboxes")
    .set({ ...changedColumns(change.set ?? {}), state: change.to, state_changed_at: change.now, listed: LISTED_AS[change.to] })
    .set((eb) => ({ version: eb("version", "+", 1) }))
    .where("id", "=", change.id)
    .where("state", "=", change.from);
  if (change.version !== undefined) update = update.where("version", "=", change.version);
  if (ends && change.reason !== undefined) update = update.set({ end_reason: change.reason, end_actor: change.actor });
  if (change.to === "ended") update = update.set({ ended_at: change.now });
  return await update.returningAll().executeTakeFirst();
}

export async function changeImage(tx: Kysely<Database>, change: ImageChange, now: number): Promise<void> {
  switch (change.kind) {
    case "begin":
      await tx.insertInto("images").values(imageRow(change.image)).execute();
      return;
    case "keep":
      await tx
        .updateTable("images")
        .set({ state: "ready", state_changed_at: now, has_memory: Number(change.hasMemory), size_bytes: change.sizeBytes })
        .where("id", "=", change.id)
        .execute();
      return;
    case "take over": {
      const { image, sizeBytes, instead } = change;
      const known = { ...imageRow(image), state: "ready", state_changed_at: now, size_bytes: sizeBytes };
      await tx.insertInto("images").values(known).execute();
      if (instead !== undefined) await changeImage(tx, { kind: "drop", id: instead }, now);
      return;
    }
    case "drop":
      await tx.updateTable("images").set({ state: "deleting", state_changed_at: now }).where("id", "=", change.id).execute();
  }
}

async function assertRoom(tx: Kysely<Database>, dialect: DialectName, change: SandboxTransition & { readonly id: string }): Promise<void> {
  const { limits, maxSnapshots: max } = change;
  const row = await tx
    .selectFrom("sandboxes")
    .where("id", "=", change.id)
    .select(["team_id as teamId", "cpu_count as cpuCount", "memory_mb as memoryMb", "disk_size_mb as diskSizeMb"])
    .executeTakeFirst();
  if (!row) return;
  const { teamId } = row;
  if (limits) await assertRoomForSandbox(tx, dialect, { teamId, limits, size: row, hasNewDisk: false });
  if (max !== undefined) await assertRoomForSnapshot(tx, dialect, { teamId, max });
}
