// One change of state: the compare-and-set, what it means for an image, and the line in the journal, in one commit.

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
  /** What happened, who made it happen, and why where there is more to say: for the journal. */
  readonly event: string;
  readonly actor: string;
  /** On the way to its end it is an `EndReason`, and becomes the end's. */
  readonly reason?: TransitionReason;
  readonly now: number;
  /** Only where nothing else has happened since that version. */
  readonly version?: number;
  readonly set?: SandboxChanges;
  readonly image?: ImageChange;
  /** Only while the team runs fewer than this; throws PlatformError("limit_reached") otherwise. */
  readonly maxOfTeam?: number;
}

export type TransitionReason = EndReason | PauseReason | `memory_lost: ${string}`;

export type ImageChange =
  /** It is about to be taken. */
  | { readonly kind: "begin"; readonly image: NewImage }
  /** The node has it. */
  | { readonly kind: "keep"; readonly id: string; readonly hasMemory: boolean; readonly sizeBytes: number }
  /** The node made it by itself. What its sandbox was to be kept in is of no use any more. */
  | { readonly kind: "take over"; readonly image: NewImage; readonly sizeBytes: number; readonly instead?: string }
  /** It is of no use any more, and the node may still have it. */
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

/** Undefined when the sandbox was not in that state, or not any more. */
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

/** The lock makes those who ask at the same time count one after the other, on every control process. */
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
