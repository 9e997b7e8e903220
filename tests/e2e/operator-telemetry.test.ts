import { type Platform, startPlatform } from "@skerry/testkit";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import spec from "../../spec/platform.openapi.json" with { type: "json" };
import { callApi, clientOf } from "./client.ts";
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from "./trace-receiver.ts";

const ROLES = ["node", "api", "edge"] as const;

let platform: Platform;
let receiver: TraceReceiver;
beforeAll(async () => {
  receiver = await startTraceReceiver();
  platform = await startPlatform({ roles: ROLES, metrics: true, env: { SKERRY_OTEL_ENDPOINT: receiver.url } });
});
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
});

async function scrape(role: (typeof ROLES)[number]): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${platform.metricsPorts[ROLES.indexOf(role)]}/metrics`);
  expect(response.status).toBe(200);
  return await response.text();
}

/** The value of a series, written as in the text format. Undefined when there is none. */
function seriesOf(text: string, series: string): number | undefined {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

function labelValues(text: string, metric: string, label: string): string[] {
  const values = text.matchAll(new RegExp(`^${metric}\\{.*?\\b${label}="([^"]*)"`, "gm"));
  return [...new Set([...values].map(([, value = ""]) => value))].sort();
}

it("every role shows what it did, by names from fixed lists", async () => {
  const sandbox = await Sandbox.create(clientOf(platform));
  await sandbox.files.write("large", "x".repeat(200_000));
  await expect.poll(async () => seriesOf(await scrape("node"), "skerry_node_sandboxes")).toBe(1);
  await expect.poll(async () => labelValues(await scrape("api"), "skerry_placed_sandboxes", "node")).toHaveLength(1);
  for (const path of ["/nonsense/1", "/nonsense/2", `/sandboxes/${sandbox.sandboxId}/nothing`]) {
    expect((await callApi(platform, path)).status).toBe(404);
  }
  expect((await callApi(platform, "/sandboxes", { headers: { "X-API-Key": "e2b_wrong" } })).status).toBe(401);
  await sandbox.kill();
  const gone = { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "8080" };
  expect((await fetch(`${platform.edgeUrl}/`, { headers: gone })).status).toBe(502);

  const api = await scrape("api");
  expect(seriesOf(api, 'skerry_api_requests_total{operation="createSandbox",code="201"}')).toBe(1);
  expect(seriesOf(api, 'skerry_api_request_duration_seconds_count{operation="createSandbox"}')).toBe(1);
  expect(seriesOf(api, 'skerry_api_requests_total{operation="none",code="404"}')).toBe(3);
  expect(seriesOf(api, 'skerry_sandbox_transitions_total{from="none",to="starting"}')).toBe(1);
  expect(seriesOf(api, 'skerry_sandbox_transitions_total{from="starting",to="running"}')).toBe(1);
  expect(seriesOf(api, 'skerry_sandbox_ends_total{reason="request"}')).toBe(1);
  expect(seriesOf(api, 'skerry_api_nodes{state="answering"}')).toBe(1);
  expect(seriesOf(api, 'skerry_database_query_duration_seconds_count{statement="commit"}')).toBeGreaterThan(3);
  expect(seriesOf(api, "skerry_event_lag_seconds")).toBeLessThan(60);
  expect(seriesOf(api, "skerry_events_total")).toBeGreaterThan(1);
  expect(seriesOf(api, "skerry_webhook_pending_deliveries")).toBe(0);
  expect(seriesOf(api, 'skerry_builds{state="queued"}')).toBe(0);

  const node = await scrape("node");
  expect(seriesOf(node, 'skerry_node_starts_total{kind="boot",result="ok"}')).toBeGreaterThan(0);
  for (const phase of ["slot", "runtime", "agent"]) {
    expect(seriesOf(node, `skerry_node_phase_duration_seconds_count{operation="boot",phase="${phase}"}`)).toBeGreaterThan(0);
  }
  expect(seriesOf(node, 'skerry_node_start_queue_starts{state="waiting"}')).toBe(0);
  expect(seriesOf(node, "skerry_node_cpus")).toBeGreaterThan(0);
  expect(seriesOf(node, 'skerry_node_disk_bytes{kind="free"}')).toBeGreaterThan(0);

  const edge = await scrape("edge");
  expect(seriesOf(edge, 'skerry_edge_requests_total{outcome="admitted"}')).toBeGreaterThan(0);
  expect(seriesOf(edge, 'skerry_edge_requests_total{outcome="502"}')).toBe(1);
  expect(seriesOf(edge, 'skerry_edge_sandbox_bytes_total{direction="to_sandbox"}')).toBeGreaterThan(200_000);
  expect(seriesOf(edge, 'skerry_edge_sandbox_bytes_total{direction="from_sandbox"}')).toBeGreaterThan(0);
  expect(seriesOf(edge, 'skerry_edge_connections{listener="http"}')).toBeGreaterThan(0);

  // What belongs to another role has no value here, rather than 0.
  expect([
    seriesOf(edge, "skerry_node_cpus"),
    seriesOf(edge, "skerry_event_lag_seconds"),
    seriesOf(node, "skerry_edge_connections_limit"),
  ]).toEqual([undefined, undefined, undefined]);
  const operations = new Set(Object.values(spec.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId)));
  const others = labelValues(api, "skerry_api_requests_total", "operation").filter((name) => !operations.has(name));
  expect(others).toEqual(["none"]);
  for (const text of [api, node, edge]) {
    expect(text).not.toContain(sandbox.sandboxId);
    expect(text).not.toContain(platform.secrets.teamId);
    expect(text).not.toContain(platform.teamSlug === "default" ? platform.secrets.apiKey : platform.teamSlug);
  }
});

it("neither the API nor the edge nor the node's listener serves the metrics", async () => {
  for (const [port, status] of [
    [platform.ports.api, 404],
    [platform.ports.edge, 400],
    [platform.ports.node, 401],
  ]) {
    expect([port, (await fetch(`http://127.0.0.1:${port}/metrics`)).status]).toEqual([port, status]);
  }
});

it("a create is one trace from the API to the node and its agent, without secrets", async () => {
  const [variable, metadata] = ["value-of-a-variable", "value-of-metadata"];
  const sandbox = await Sandbox.create({ ...clientOf(platform), envs: { SECRET: variable }, metadata: { note: metadata } });
  const find = (name: string, kind: number, parent?: ReceivedSpan) =>
    receiver.spans.find((span) => span.name === name && span.kind === kind && (!parent || span.parentSpanId === parent.spanId));
  const root = () =>
    receiver.spans.find(({ name, attributes }) => name === "createSandbox" && attributes["skerry.sandbox_id"] === sandbox.sandboxId);
  await expect
    .poll(root)
    .toMatchObject({ kind: 2, roles: "api", attributes: { "http.request.method": "POST", "http.response.status_code": 201 } });
  expect(root()?.parentSpanId ?? "").toBe("");

  const asked = () => find("node CreateSandbox", 3, root());
  await expect.poll(asked).toMatchObject({ roles: "api", traceId: root()?.traceId });
  const served = () => find("createSandbox", 2, asked());
  await expect.poll(served).toMatchObject({ roles: "node", attributes: { "skerry.start_kind": "boot" } });
  const told = () => find("agent POST /init", 3, served());
  await expect.poll(told).toMatchObject({ roles: "node", traceId: root()?.traceId });
  await expect.poll(() => find("POST /init", 2, told())).toMatchObject({ attributes: { "skerry.part": "agent" } });
  for (const phase of ["wait for a turn", "boot slot", "boot runtime", "boot agent"]) {
    await expect.poll(() => find(phase, 1, served())).toBeDefined();
  }
  // A span lies within its parent, also when a guest says how long something took.
  const [inner, outer] = [find("POST /init", 2, told()), told()];
  expect(BigInt(inner?.startTimeUnixNano ?? 0)).toBeGreaterThan(BigInt(outer?.startTimeUnixNano ?? 0) - 5_000_000n);

  await sandbox.kill();
  await expect.poll(() => receiver.spans.some(({ name, roles }) => name === "killSandbox" && roles === "node")).toBe(true);
  // What the platform does for itself is in no trace.
  expect(receiver.spans.filter(({ name }) => /readUsage|listSandboxes$/i.test(name) && name.startsWith("node"))).toEqual([]);
  const { apiKey, adminToken, internalSecret } = platform.secrets;
  for (const secret of [variable, metadata, apiKey, adminToken, internalSecret]) expect(receiver.text()).not.toContain(secret);
});
