import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import type { SandboxId } from "@skerry/wire";
import { RouteService } from "@skerry/wire/control";
import { expect, test } from "vitest";
import { type RouteTableOptions, routeTableFrom } from "./route-table.ts";

const ID = "iabc" as SandboxId;

function tableOver(running: Map<string, string>, options: RouteTableOptions = {}) {
  const asked: string[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(RouteService, {
      findRoute({ sandboxId }) {
        asked.push(sandboxId);
        const nodeUrl = running.get(sandboxId);
        if (nodeUrl === "broken") throw new ConnectError("no database", Code.Internal);
        if (nodeUrl === undefined) throw new ConnectError("not running", Code.NotFound);
        return { nodeId: "n", nodeUrl };
      },
    });
  });
  return { asked, table: routeTableFrom(createClient(RouteService, transport), options) };
}

test("a running sandbox's route is asked for once, until it is too old", async () => {
  let now = 0;
  const { asked, table } = tableOver(new Map([[ID, "http://a"]]), { now: () => now, maxAgeMs: 100 });
  expect(await table.find(ID)).toEqual({ nodeId: "n", nodeUrl: "http://a" });
  await table.find(ID);
  expect(asked).toHaveLength(1);
  now = 101;
  await table.find(ID);
  expect(asked).toHaveLength(2);
});

test("questions side by side are one call", async () => {
  const { asked, table } = tableOver(new Map([[ID, "http://a"]]));
  await Promise.all(Array.from({ length: 50 }, () => table.find(ID)));
  expect(asked).toHaveLength(1);
});

test("a sandbox that is not running is asked for each time", async () => {
  const running = new Map<string, string>();
  const { table } = tableOver(running);
  expect(await table.find(ID)).toBeUndefined();
  running.set(ID, "http://a");
  expect(await table.find(ID)).toMatchObject({ nodeUrl: "http://a" });
});

test("a route that turned out wrong is asked for again, also when a call is under way", async () => {
  const running = new Map([[ID as string, "http://a"]]);
  const { asked, table } = tableOver(running);
  await table.find(ID);
  running.set(ID, "http://b");
  table.forget(ID);
  expect(await table.find(ID)).toMatchObject({ nodeUrl: "http://b" });
  table.forget(ID);
  const old = table.find(ID);
  table.forget(ID);
  running.delete(ID);
  await old.catch(() => {});
  expect(await table.find(ID)).toBeUndefined();
  expect(asked).toHaveLength(4);
});

test("a route table that cannot answer is an error, not an absent sandbox, and is asked again", async () => {
  const running = new Map([[ID as string, "broken"]]);
  const { table } = tableOver(running);
  await expect(table.find(ID)).rejects.toThrow("no database");
  running.set(ID, "http://a");
  expect(await table.find(ID)).toMatchObject({ nodeUrl: "http://a" });
});

test("no more than so many routes are remembered, the oldest goes first", async () => {
  const running = new Map(["ia", "ib", "ic"].map((id) => [id, "http://a"]));
  const { asked, table } = tableOver(running, { maxEntries: 2 });
  for (const id of ["ia", "ib", "ic", "ic", "ib", "ia"]) await table.find(id as SandboxId);
  expect(asked).toEqual(["ia", "ib", "ic", "ia"]);
});
