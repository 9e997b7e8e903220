// Counts what a team has, in the transaction that adds to it. The lock makes parallel requests, also of other processes, count one after the
// other. What must not be exceeded is given by the caller.

import { PlatformError } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { LimitName } from "./limit-names.ts";
import { OCCUPYING_STATES, type SandboxState } from "./sandbox.ts";
import type { Database } from "./tables.ts";

/** What the running sandboxes of a team may have together, and the disks of all its sandboxes. Null: no limit. */
export type SandboxLimits = Readonly<Record<"sandboxes" | "cpu" | "memoryMb" | "diskMb", number | null>>;

export interface SandboxSize {
  readonly cpuCount: number;
  readonly memoryMb: number;
  readonly diskSizeMb: number;
}

/** States in which a sandbox has a disk. */
export const STORED_STATES: readonly SandboxState[] = [...OCCUPYING_STATES, "paused", "copying"];

export interface AddedSandbox {
  readonly teamId: string;
  readonly limits: SandboxLimits;
  readonly size: SandboxSize;
  /** Whether its disk is new. The disk of a sandbox that is resumed is there already. */
  readonly hasNewDisk: boolean;
}

/** Throws PlatformError("limit_reached") with the name of the limit as its detail when one more sandbox would be too much. */
export async function assertRoomForSandbox(tx: Kysely<Database>, dialect: DialectName, added: AddedSandbox): Promise<void> {
  const { teamId, limits, size } = added;
  await lockTeam(tx, dialect, teamId);
  const { sandboxes, cpu, memoryMb, diskMb } = limits;
  if (sandboxes !== null && (await countUpTo(tx, teamId, sandboxes)) >= sandboxes) throw limitReached("sandboxes", sandboxes);
  if (cpu !== null || memoryMb !== null) {
    const used = await sumSizes(tx, teamId, OCCUPYING_STATES);
    if (cpu !== null && used.cpuCount + size.cpuCount > cpu) throw limitReached("cpu", cpu);
    if (memoryMb !== null && used.memoryMb + size.memoryMb > memoryMb) throw limitReached("memoryMb", memoryMb);
  }
  if (diskMb !== null && added.hasNewDisk) {
    const used = await sumSizes(tx, teamId, STORED_STATES);
    if (used.diskSizeMb + size.diskSizeMb > diskMb) throw limitReached("diskMb", diskMb);
  }
}

/** Throws PlatformError("limit_reached") when the team has as many snapshots as it may. */
export async function assertRoomForSnapshot(
  tx: Kysely<Database>,
  dialect: DialectName,
  { teamId, max }: { readonly teamId: string; readonly max: number },
): Promise<void> {
  await lockTeam(tx, dialect, teamId);
  if ((await countSnapshots(tx, teamId)) >= max) throw limitReached("snapshots", max);
}

/** Snapshots that were taken, or are being taken, and that nobody deleted. */
export async function countSnapshots(db: Kysely<Database>, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom("images")
    .where("team_id", "=", teamId)
    .where("kind", "=", "snapshot")
    .where("state", "in", ["creating", "ready"])
    .select(sql<number>`count(*)`.as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The sizes of a team's sandboxes in these states, added up. */
export async function sumSizes(
  db: Kysely<Database>,
  teamId: string,
  states: readonly SandboxState[],
): Promise<SandboxSize & { readonly count: number }> {
  const row = await db
    .selectFrom("sandboxes")
    .where("team_id", "=", teamId)
    .where("state", "in", states)
    .select([
      sql<number>`count(*)`.as("count"),
      sql<number>`coalesce(sum(cpu_count), 0)`.as("cpu"),
      sql<number>`coalesce(sum(memory_mb), 0)`.as("memory"),
      sql<number>`coalesce(sum(disk_size_mb), 0)`.as("disk"),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(row.count), cpuCount: Number(row.cpu), memoryMb: Number(row.memory), diskSizeMb: Number(row.disk) };
}

/** The number of running sandboxes, but at most `max`: more need not be counted. */
async function countUpTo(tx: Kysely<Database>, teamId: string, max: number): Promise<number> {
  const some = tx
    .selectFrom("sandboxes")
    .where("team_id", "=", teamId)
    .where("state", "in", OCCUPYING_STATES)
    .select(sql.lit(1).as("one"))
    .limit(max)
    .as("some");
  const { count } = await tx.selectFrom(some).select(sql<number>`count(*)`.as("count")).executeTakeFirstOrThrow();
  return Number(count);
}

function limitReached(name: LimitName, max: number): PlatformError {
  return new PlatformError("limit_reached", `the team has reached its limit ${name} (${max})`, { detailCode: name });
}
