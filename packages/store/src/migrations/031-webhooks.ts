import type { ColumnDefinitionBuilder, Kysely } from "kysely";
import type { Migration } from "kysely/migration";

const required = (column: ColumnDefinitionBuilder) => column.notNull();
const zero = (column: ColumnDefinitionBuilder) => column.notNull().defaultTo(0);

/** The webhooks of teams, and the deliveries that have failed so far. A delivery that succeeds leaves no row. */
export const webhooks: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("webhooks")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("team_id", "text", (column) => column.notNull().references("teams.id"))
      .addColumn("name", "text", required)
      .addColumn("url", "text", required)
      .addColumn("types", "text")
      .addColumn("enabled", "integer", required)
      .addColumn("disabled_reason", "text")
      .addColumn("sealed", "text", required)
      .addColumn("key_id", "text", required)
      .addColumn("cursor", "bigint", required)
      .addColumn("failures", "integer", zero)
      .addColumn("failing_since", "bigint")
      .addColumn("retry_at", "bigint")
      .addColumn("last_error", "text")
      .addColumn("last_delivered_at", "bigint")
      .addColumn("skipped", "bigint", zero)
      .addColumn("owner", "text")
      .addColumn("lease_until", "bigint", zero)
      .addColumn("created_at", "bigint", required)
      .addColumn("updated_at", "bigint", required)
      .execute();
    await db.schema.createIndex("webhooks_team").on("webhooks").columns(["team_id", "created_at", "id"]).execute();
    await db.schema
      .createTable("webhook_deliveries")
      .addColumn("webhook_id", "text", (column) => column.notNull().references("webhooks.id").onDelete("cascade"))
      .addColumn("sequence", "bigint", required)
      .addColumn("state", "text", required)
      .addColumn("attempts", "integer", required)
      .addColumn("first_at", "bigint", required)
      .addColumn("next_at", "bigint", required)
      .addColumn("error", "text", required)
      .addPrimaryKeyConstraint("webhook_deliveries_pk", ["webhook_id", "sequence"])
      .execute();
    await db.schema.createIndex("webhook_deliveries_due").on("webhook_deliveries").columns(["webhook_id", "state", "next_at"]).execute();
  },
};
