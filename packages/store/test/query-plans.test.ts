// The lists that callers can ask for are read along an index, however many sandboxes a team has.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { openStore } from "../src/index.ts";

it.each([
  ["running ones", "listed = 'running'", "sandboxes_listed "],
  ["paused ones", "listed = 'paused'", "sandboxes_listed "],
  ["both", "listed is not null", "sandboxes_listed_all "],
])("SQLite reads a list of %s in order", async (_name, condition, index) => {
  const folder = await mkdtemp(join(tmpdir(), "skerry-plan-"));
  await using store = await openStore(`sqlite:${join(folder, "x.db")}`);
  expect(await store.sandboxes.list({ teamId: "t" }, { order: "desc", limit: 1 })).toEqual([]);
  const db = new DatabaseSync(join(folder, "x.db"));
  for (const order of ["started_at desc, id asc", "started_at asc, id desc"]) {
    const plan = db
      .prepare(`explain query plan select * from sandboxes where team_id = ? and ${condition} order by ${order} limit 5`)
      .all("t");
    const text = plan.map(({ detail }) => String(detail)).join("\n");
    expect(text).toContain(`USING INDEX ${index}`);
    expect(text).not.toContain("TEMP B-TREE");
  }
  db.close();
  await rm(folder, { recursive: true });
});
