// Changes of the options of sandboxes. The row of a sandbox whose node may have other options than the row names the API process that works
// on it, in `options_change`: "" when none does.

import type { SandboxOptions } from "@skerry/wire/node";
import { type Kysely, type Selectable, sql } from "kysely";
import { recordEvent } from "./events/record-event.ts";
import { eventOfUpdate } from "./events/sandbox-events.ts";
import { optionsFrom, type Sandbox, type SandboxState, sandboxFrom } from "./sandbox.ts";
import type { Database, SandboxTable } from "./tables.ts";

export interface OptionsChange {
  readonly options: SandboxOptions;
  /** The process that brings the options to the node. */
  readonly owner: string;
}

/** A sandbox whose node may have other options than its row. */
export interface UnsettledOptions {
  readonly id: string;
  readonly state: SandboxState;
  /** "": nobody works on it. */
  readonly owner: string;
}

export class OptionsChanges {
  readonly #db: Kysely<Database>;
  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** Returns false when the sandbox does not run, another change is under way, or its options are not those of `before` any more. */
  async begin(before: Pick<Sandbox, "id" | "options">, { options, owner }: OptionsChange): Promise<boolean> {
    const update = this.#db
      .updateTable("sandboxes")
      .set({ options: JSON.stringify(options), options_change: owner })
      .where("id", "=", before.id)
      .where("state", "=", "running")
      .where("options", "=", JSON.stringify(before.options))
      .where((eb) => eb.or([eb("options_change", "is", null), eb("options_change", "=", "")]));
    return (await update.executeTakeFirst()).numUpdatedRows === 1n;
  }

  /** The node has the options. Returns false when this process does not work on the change any more. */
  async end(id: string, owner: string, now: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const update = tx.updateTable("sandboxes").set({ options_change: null }).where("id", "=", id).where("options_change", "=", owner);
      return await announce(tx, await update.returningAll().executeTakeFirst(), now);
    });
  }

  /** The change has failed: the former options count, and the node may have either. */
  async undo(before: Pick<Sandbox, "id" | "options">, owner: string): Promise<void> {
    await this.#db
      .updateTable("sandboxes")
      .set({ options: JSON.stringify(before.options), options_change: "" })
      .where("id", "=", before.id)
      .where("options_change", "=", owner)
      .execute();
  }

  /** The node may have other options than the row, and nobody works on it. */
  async disown(id: string): Promise<void> {
    await this.#db.updateTable("sandboxes").set({ options_change: "" }).where("id", "=", id).where("options_change", "is", null).execute();
  }

  /** Changes the options of a paused sandbox, which no node has. Returns false when it is not paused, or its options are others by now. */
  async setPaused(before: Pick<Sandbox, "id" | "options">, options: SandboxOptions, now: number): Promise<boolean> {
    return await this.#db.transaction().execute(async (tx) => {
      const update = tx
        .updateTable("sandboxes")
        .set({ options: JSON.stringify(options), options_change: null })
        .where("id", "=", before.id)
        .where("state", "=", "paused")
        .where("options", "=", JSON.stringify(before.options));
      return await announce(tx, await update.returningAll().executeTakeFirst(), now);
    });
  }

  async listUnsettled(nodeId: string, limit: number): Promise<readonly UnsettledOptions[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("node_id", "=", nodeId)
      .where("options_change", "is not", null)
      .limit(limit)
      .select(["id", "state", sql<string>`options_change`.as("owner")])
      .execute();
    return rows.map(({ id, state, owner }) => ({ id, state: state as SandboxState, owner }));
  }

  /** Takes over a change that its process has left. Returns undefined when it is not left, or the sandbox is in another state. */
  async takeOver({ id, state, owner }: UnsettledOptions, by: string): Promise<Sandbox | undefined> {
    const row = await this.#db
      .updateTable("sandboxes")
      .set({ options_change: by })
      .where("id", "=", id)
      .where("state", "=", state)
      .where("options_change", "=", owner)
      .returningAll()
      .executeTakeFirst();
    return row && sandboxFrom(row);
  }

  /** The sandboxes that have not ended, by id, whose options have a value that another key encrypted. */
  async listSealed(page: {
    readonly otherThan: string;
    readonly afterId: string;
    readonly limit: number;
  }): Promise<readonly Pick<Sandbox, "id" | "teamId" | "options">[]> {
    const rows = await this.#db
      .selectFrom("sandboxes")
      .where("id", ">", page.afterId)
      .where("state", "!=", "ended")
      .where("options", "like", '%"keyId":"%')
      .where("options", "not like", `%"keyId":"${page.otherThan}"%`)
      .select(["id", "team_id", "options"])
      .orderBy("id")
      .limit(page.limit)
      .execute();
    return rows.map((row) => ({ id: row.id, teamId: row.team_id, options: optionsFrom(row) }));
  }

  /** Replaces the encrypted form of what the options have, unless they have changed meanwhile. */
  async reseal(before: Pick<Sandbox, "id" | "options">, options: SandboxOptions): Promise<boolean> {
    const update = this.#db
      .updateTable("sandboxes")
      .set({ options: JSON.stringify(options) })
      .where("id", "=", before.id)
      .where("options", "=", JSON.stringify(before.options));
    return (await update.executeTakeFirst()).numUpdatedRows === 1n;
  }
}

/** Records the event of a change that was made. Returns whether it was. */
async function announce(tx: Kysely<Database>, row: Selectable<SandboxTable> | undefined, now: number): Promise<boolean> {
  if (row) await recordEvent(tx, eventOfUpdate(row, { now }));
  return row !== undefined;
}
