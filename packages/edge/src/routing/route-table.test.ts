import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { AGENT_PORT, type SandboxId } from "@skerry/wire";
import { RouteRefusalSchema, RouteService } from "@skerry/wire/control";
import { expect, test } from "vitest";
import { type RouteTableOptions, routeTableFrom } from "./route-table.ts";

const ID = "iabc" as SandboxId;
const UNKNOWN = { kind: "absent", absence: { state: "unknown" } };

function tableOver(running: Map<string, string>, options: RouteTableOptions = {}) {
  const asked: string[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(RouteService, {
      async findRoute({ sandboxId }) {
        asked.push(sandboxId);
        const nodeUrl = running.get(sandboxId);
        if (nodeUrl === "hangs") await new Promise((resolve) => setTimeout(resolve, 5_000));
        if (nodeUrl === "broken") throw new ConnectError("no database", Code.Internal);
        if (nodeUrl === undefined) throw new ConnectError("not running", Code.NotFound);
        return { nodeId: "n", nodeUrl, run: "1" };
      },
    });
  });
  return { asked, table: routeTableFrom(createClient(RouteService, transport), options) };
}

test("a running sandbox's route is asked for once, until it is too old", async () => {
  let now = 0;
  const { asked, table } = tableOver(new Map([[ID, "http://a"]]), { now: () => now, maxAgeMs: 100 });
  expect(await table.find(ID)).toEqual({ kind: "running", route: { nodeId: "n", nodeUrl: "http://a", run: "1" } });
  await table.find(ID);
  expect(asked).toHaveLength(1);
  now = 101;
  await table.find(ID);
  expect(asked).toHaveLength(2);
});

test("a fresh route is asked for although one is known, once for all who want one", async () => {
  const running = new Map([[ID as string, "http://a"]]);
  const { asked, table } = tableOver(running);
  await table.find(ID);
  await Promise.all([1, 2, 3].map(() => table.find(ID, undefined, { isFresh: true })));
  expect(asked).toHaveLength(2);
  running.delete(ID);
  expect(await table.find(ID)).toMatchObject({ kind: "running" });
  expect(await table.find(ID, undefined, { isFresh: true })).toEqual(UNKNOWN);
  expect(await table.find(ID)).toEqual(UNKNOWN);
});

test("questions side by side are one call", async () => {
  const { asked, table } = tableOver(new Map([[ID, "http://a"]]));
  await Promise.all(Array.from({ length: 50 }, () => table.find(ID)));
  expect(asked).toHaveLength(1);
});

test("a sandbox that is not running is asked for each time", async () => {
  const running = new Map<string, string>();
  const { table } = tableOver(running);
  expect(await table.find(ID)).toEqual(UNKNOWN);
  running.set(ID, "http://a");
  expect(await table.find(ID)).toMatchObject({ route: { nodeUrl: "http://a" } });
});

test("a route that turned out wrong is asked for again, also when a call is under way", async () => {
  const running = new Map([[ID as string, "http://a"]]);
  const { asked, table } = tableOver(running);
  await table.find(ID);
  running.set(ID, "http://b");
  table.forget(ID);
  expect(await table.find(ID)).toMatchObject({ route: { nodeUrl: "http://b" } });
  table.forget(ID);
  const old = table.find(ID);
  table.forget(ID);
  running.delete(ID);
  await old.catch(() => {});
  expect(await table.find(ID)).toEqual(UNKNOWN);
  expect(asked).toHaveLength(4);
});

test("a route table that cannot answer is an error, not an absent sandbox, and is asked again", async () => {
  const running = new Map([[ID as string, "broken"]]);
  const { table } = tableOver(running);
  await expect(table.find(ID)).rejects.toThrow("no database");
  running.set(ID, "http://a");
  expect(await table.find(ID)).toMatchObject({ route: { nodeUrl: "http://a" } });
});

test("no more than so many routes are remembered, the oldest goes first", async () => {
  const running = new Map(["ia", "ib", "ic"].map((id) => [id, "http://a"]));
  const { asked, table } = tableOver(running, { maxEntries: 2 });
  for (const id of ["ia", "ib", "ic", "ic", "ib", "ia"]) await table.find(id as SandboxId);
  expect(asked).toEqual(["ia", "ib", "ic", "ia"]);
});

/** A control plane whose wakes come to their end when the test says so. */
function wakingTable(options: RouteTableOptions = {}) {
  const asked: string[] = [];
  const ends: ((nodeUrl: string) => void)[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(RouteService, {
      async findRoute({ wake, port, accessToken, trafficToken, probe, obeysIngress }) {
        expect(obeysIngress).toBe(true);
        asked.push(wake ? `${probe ? "probe" : "wake"} ${port} ${accessToken.slice(0, 10)}${trafficToken}` : "look");
        if (!wake) throw new ConnectError("paused", Code.NotFound, undefined, [{ desc: RouteRefusalSchema, value: { state: "paused" } }]);
        return { nodeId: "n", nodeUrl: await new Promise<string>((resolve) => ends.push(resolve)), run: "1" };
      },
    });
  });
  return { asked, ends, table: routeTableFrom(createClient(RouteService, transport), options) };
}

test("visitors with the same token for their port share a wake; who only looks waits for no wake", async () => {
  const { asked, ends, table } = wakingTable();
  const visitors = [
    { port: 3000, accessToken: "", trafficToken: "", isProbe: false },
    { port: 3001, accessToken: "anything", trafficToken: "", isProbe: false },
    { port: 3001, accessToken: "", trafficToken: "three", isProbe: false },
    { port: 3000, accessToken: "", trafficToken: "three", isProbe: false },
    { port: AGENT_PORT, accessToken: "one", trafficToken: "", isProbe: false },
    { port: AGENT_PORT, accessToken: "two", trafficToken: "", isProbe: false },
    { port: AGENT_PORT, accessToken: "one", trafficToken: "", isProbe: false },
    { port: AGENT_PORT, accessToken: "x".repeat(60_000), trafficToken: "", isProbe: false },
    { port: AGENT_PORT, accessToken: "one", trafficToken: "", isProbe: true },
  ];
  const waiting = visitors.map((visitor) => table.find(ID, visitor));
  expect(await table.find(ID)).toEqual({ kind: "absent", absence: { state: "paused" } });
  expect(asked).toEqual([
    "wake 3000 ",
    "wake 3001 three",
    `wake ${AGENT_PORT} one`,
    `wake ${AGENT_PORT} two`,
    `wake ${AGENT_PORT} `,
    `probe ${AGENT_PORT} one`,
    "look",
  ]);
  for (const end of ends) end("http://a");
  expect(await Promise.all(waiting)).toEqual(
    visitors.map(() => ({ kind: "running", route: { nodeId: "n", nodeUrl: "http://a", run: "1" } })),
  );
  await table.find(ID, visitors[3]);
  expect(asked).toHaveLength(7);
});

test("an answer that was under way when the route turned out wrong is not remembered over the one asked for afterwards", async () => {
  const { ends, table } = wakingTable();
  const visitor = { port: 3000, accessToken: "", trafficToken: "", isProbe: false };
  const old = table.find(ID, visitor);
  table.forget(ID);
  const fresh = table.find(ID, visitor);
  await expect.poll(() => ends.length).toBe(2);
  ends[1]?.("http://fresh");
  await fresh;
  ends[0]?.("http://old");
  await old;
  expect(await table.find(ID)).toMatchObject({ route: { nodeUrl: "http://fresh" } });
});

test("a wake may take longer than a look, and neither lasts for ever", async () => {
  const { table } = wakingTable({ askTimeoutMs: 20, wakeTimeoutMs: 100 });
  const startedAt = performance.now();
  await expect(table.find(ID, { port: 3000, accessToken: "", trafficToken: "", isProbe: false })).rejects.toMatchObject({
    code: Code.DeadlineExceeded,
  });
  expect(performance.now() - startedAt).toBeGreaterThan(90);
});

test.each(["broken", "hangs"])("while the control plane %s, what it said last is used, and asked for again later", async (how) => {
  let now = 0;
  const running = new Map([[ID as string, "http://a"]]);
  const { asked, table } = tableOver(running, { now: () => now, maxAgeMs: 100, patienceMs: 50 });
  await table.find(ID);
  running.set(ID, how);
  for (const at of [1_000, 1_050, 60_000]) {
    now = at;
    expect(await table.find(ID)).toMatchObject({ route: { nodeUrl: "http://a" } });
  }
  // Not at each request.
  expect(asked.length).toBeLessThanOrEqual(3);
  running.set(ID, "http://b");
  table.forget(ID);
  expect(await table.find(ID)).toMatchObject({ route: { nodeUrl: "http://b" } });
});

test("what its node did not have is not used again when the control plane can't be asked", async () => {
  let now = 0;
  const running = new Map([[ID as string, "http://a"]]);
  const { table } = tableOver(running, { now: () => now, maxAgeMs: 100 });
  await table.find(ID);
  running.set(ID, "broken");
  table.forget(ID);
  await expect(table.find(ID)).rejects.toThrow("no database");
  running.set(ID, "http://a");
  await table.find(ID);
  running.delete(ID);
  now = 1_000;
  expect(await table.find(ID)).toEqual(UNKNOWN);
  running.set(ID, "broken");
  await expect(table.find(ID)).rejects.toThrow("no database");
});
