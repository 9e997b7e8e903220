// The database's disk without any room: what can't be written is refused by name, and nothing has to be opened again afterwards.

import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openStore, type Store } from "../src/index.ts";
import { addRunning, addTeam, BY, newSandbox } from "./store-contract.ts";

let dir: string;
let store: Store;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "full-database-"));
  await runCommand("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", dir]);
  store = await openStore(`sqlite:${join(dir, "skerry.db")}`);
});
afterAll(async () => {
  await store?.close();
  await runCommand("umount", ["--lazy", dir]);
  rmSync(dir, { recursive: true });
});

const fill = () => expect(() => writeFileSync(join(dir, "rest"), Buffer.alloc(32 << 20))).toThrow(/ENOSPC/);

it("writes down on a full disk what is being ended", async () => {
  const teamId = await addTeam(store);
  const ids: string[] = [];
  for (let i = 0; i < 100; i += 1) ids.push(await addRunning(store, teamId));
  fill();
  for (const id of ids) {
    expect(
      await store.sandboxes.transition(id, { from: "running", to: "killing", event: "kill", now: 3, reason: "request", ...BY }),
    ).toBeDefined();
    expect(await store.sandboxes.transition(id, { from: "killing", to: "ended", event: "gone", now: 4, ...BY })).toBeDefined();
  }
  unlinkSync(join(dir, "rest"));
});

it("refuses writes as no capacity, with what makes room; the next ones work when there is some", async () => {
  const teamId = await addTeam(store);
  fill();
  const full = { code: "capacity_unavailable", publicMessage: expect.stringMatching(/disk of the machine is full.*To free space/) };
  // In a transaction of several statements: some of them still fit into what the database's files have already.
  const sandbox = () => newSandbox(teamId, { metadata: { big: "x".repeat(200_000) } });
  const written: string[] = [];
  const failure = await (async () => {
    for (;;) {
      const next = sandbox();
      await store.sandboxes.insert(next, BY);
      written.push(next.id);
    }
  })().catch((error: unknown) => error);
  expect(failure).toMatchObject(full);
  await expect(store.sandboxes.insert(sandbox(), BY)).rejects.toMatchObject(full);
  await expect(store.identity.putTeam({ id: "t", slug: "t", name: "T".repeat(500_000), createdAt: 1 })).rejects.toMatchObject(full);
  for (const id of written) expect(await store.sandboxes.findState(id)).toBe("starting");
  unlinkSync(join(dir, "rest"));
  const after = sandbox();
  await store.sandboxes.insert(after, BY);
  expect(await store.sandboxes.findState(after.id)).toBe("starting");
});
