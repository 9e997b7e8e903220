// One change of a sandbox's state: the compare-and-set, the change to the image, and the entry in the journal, in one transaction.

import { PlatformError } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import { imageRow, type NewImage } from "./image.ts";
import {
  changedColumns,
  type EndReason,
  LISTED_AS,
  type NewSandbox,
  OCCUPYING_STATES,
  type PauseReason,
  type Sandbox,
  type SandboxChanges,
  type SandboxState,
  sandboxFrom,
  sandboxRow,
} from "./sandbox.ts";
import type { Database } from "./tables.ts";

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
  /** Applies only while the team runs fewer sandboxes than this. Throws PlatformError("limit_reached") otherwise. */
  readonly maxOfTeam?: number;
}

export type TransitionReason = EndReason | PauseReason | `memory_lost: ${string}`;

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
  readonly maxOfTeam?: number;
}

export async function insertSandbox(tx: Kysely<Database>, dialect: DialectName, sandbox: NewSandbox, about: Inserted): Promise<void> {
  if (about.maxOfTeam !== undefined) await assertBelowLimit(tx, dialect, { teamId: sandbox.teamId, max: about.maxOfTeam });
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
  if (change.maxOfTeam !== undefined) {
    const team = await tx.selectFrom("sandboxes").where("id", "=", change.id).select("team_id").executeTakeFirst();
    if (team) await assertBelowLimit(tx, dialect, { teamId: team.team_id, max: change.maxOfTeam });
  }
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
  if (change.image) await changeImage(tx, change.image, change.now);
  if (change.to === "ended") await tx.deleteFrom("sandbox_links").where("sandbox_id", "=", change.id).execute();
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

/** Throws when the team runs as many sandboxes as it may. The lock makes parallel requests, also of other processes, count one after the other. */
async function assertBelowLimit(tx: Kysely<Database>, dialect: DialectName, limit: { teamId: string; max: number }): Promise<void> {
  await lockTeam(tx, dialect, limit.teamId);
  const { count } = await tx
    .selectFrom("sandboxes")
    .where("team_id", "=", limit.teamId)
    .where("state", "in", OCCUPYING_STATES)
    .select(sql<number>`count(*)`.as("count"))
    .executeTakeFirstOrThrow();
  if (Number(count) >= limit.max) throw new PlatformError("limit_reached", `the team runs ${count} sandboxes and may run ${limit.max}`);
}
