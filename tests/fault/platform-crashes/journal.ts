import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { RunningPlatform } from "@skerry/testkit";

export interface JournalLine {
  readonly version: number;
  readonly event: string;
  readonly to: string;
  readonly reason: string | null;
}

/** The journal lines of a sandbox, oldest first. */
export function journalOf({ dataDir }: RunningPlatform, sandboxId: string): JournalLine[] {
  const database = new DatabaseSync(join(dataDir, "skerry.db"), { readOnly: true });
  try {
    const lines = database.prepare("select version, event, to_state, reason from sandbox_events where sandbox_id = ? order by version");
    return lines.all(sandboxId).map((row) => ({
      version: Number(row.version),
      event: String(row.event),
      to: String(row.to_state),
      reason: row.reason === null ? null : String(row.reason),
    }));
  } finally {
    database.close();
  }
}
