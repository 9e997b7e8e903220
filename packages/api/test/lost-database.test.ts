import { startPostgres } from "@skerry/testkit/postgres";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect, it } from "vitest";
import { ApiHarness } from "./api-harness.ts";

it("outlives its database: says no more than that it failed, and goes on when the database is back", async () => {
  await using postgres = await startPostgres();
  await using api = await ApiHarness.start(await postgres.createDatabase("lost"));
  const [kept, expiring] = [await api.create(), await api.create({ timeout: 2 })];
  await postgres.crash();
  const answer = await api.call("POST", "/v2/sandboxes", { body: { templateID: "base" } });
  expect(answer.body).toEqual({ code: 500, message: "An internal error occurred" });
  expect(answer.headers["should-retry"]).toBe("false");
  expect((await api.call("GET", "/health")).status).toBe(200);
  expect(api.node.held.size).toBe(2);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await postgres.restart();
  await waitUntil("what is over has ended", async () => (await api.store.sandboxes.find(expiring))?.state === "ended");
  expect((await api.call("GET", `/sandboxes/${kept}`)).status).toBe(200);
  expect([...api.node.held.keys()]).toEqual([kept]);
});
