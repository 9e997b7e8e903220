// Which sandboxes mount which volumes. A sandbox mounts its volumes from its row on until it has ended, also while it is paused.

import { PlatformError } from "@skerry/base";
import { type Kysely, sql } from "kysely";
import { type DialectName, lockTeam } from "./dialect/lock-team.ts";
import type { NewSandbox } from "./sandbox.ts";
import type { Database } from "./tables.ts";

/**
 * Records the mounts of a new sandbox, in the transaction of its row. The lock makes a deletion of one of the volumes come before or after.
 * Throws PlatformError("volume_gone") when the team does not have one of them any more.
 */
export async function insertMounts(
  tx: Kysely<Database>,
  dialect: DialectName,
  { id, teamId, volumeMounts }: Pick<NewSandbox, "id" | "teamId" | "volumeMounts">,
): Promise<void> {
  if (volumeMounts.length === 0) return;
  await lockTeam(tx, dialect, teamId);
  const wanted = [...new Set(volumeMounts.map(({ volumeId }) => volumeId))];
  const { count } = await tx
    .selectFrom("volumes")
    .where("id", "in", wanted)
    .where("team_id", "=", teamId)
    .where("state", "=", sql.lit("ready"))
    .select(sql<number>`count(*)`.as("count"))
    .executeTakeFirstOrThrow();
  if (Number(count) !== wanted.length) throw new PlatformError("volume_gone", "a volume of the sandbox was deleted");
  const rows = volumeMounts.map(({ volumeId, path }) => ({ sandbox_id: id, volume_id: volumeId, path }));
  await tx.insertInto("volume_mounts").values(rows).execute();
}

/** The number of sandboxes that mount a volume. */
export async function countMounts(db: Kysely<Database>, volumeId: string): Promise<number> {
  const { count } = await db
    .selectFrom("volume_mounts")
    .where("volume_id", "=", volumeId)
    .select(sql<number>`count(distinct sandbox_id)`.as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}
