import { AGENT_PORT } from "@skerry/wire";
import { expect, test } from "vitest";
import { TrafficLimits } from "./traffic-limits.ts";

const at = (sandboxId: string, port = 80) => ({ sandboxId: sandboxId as never, port });
const none = { maxSandboxConnections: 0, maxGroupConnections: 0, maxSandboxRequestsPerSecond: 0, maxGroupRequestsPerSecond: 0 };
const live = () => new AbortController().signal;

test("a sandbox has its places on all its ports together, and its agent has as many", () => {
  const limits = new TrafficLimits({ ...none, maxSandboxConnections: 2 });
  for (const port of [80, 81]) expect(limits.take(at("ia", port), "g", live())).toBeUndefined();
  expect(limits.take(at("ia", 82), "g", live())).toEqual({ scope: "sandbox", of: "connections", limit: 2 });
  expect(limits.take(at("ia", AGENT_PORT), "g", live())).toBeUndefined();
  expect(limits.take(at("ib"), "g", live())).toBeUndefined();
});

test("the sandboxes of a group share its places, their agents have as many, and other groups have their own", () => {
  const limits = new TrafficLimits({ ...none, maxGroupConnections: 2 });
  const first = new AbortController();
  expect(limits.take(at("ia"), "g", first.signal)).toBeUndefined();
  expect(limits.take(at("ib"), "g", live())).toBeUndefined();
  expect(limits.take(at("ic"), "g", live())).toEqual({ scope: "group", of: "connections", limit: 2 });
  for (const [target, group] of [
    [at("ia", AGENT_PORT), "g"],
    [at("id"), "h"],
    [at("ie"), undefined],
  ] as const) {
    expect(limits.take(target, group, live())).toBeUndefined();
  }
  first.abort();
  expect(limits.take(at("ic"), "g", live())).toBeUndefined();
});

test("a request that one limit refuses counts towards none", () => {
  const limits = new TrafficLimits({ ...none, maxSandboxRequestsPerSecond: 10, maxGroupRequestsPerSecond: 5, now: () => 0 });
  for (let n = 0; n < 10; n++) expect(limits.take(at("ia"), "g", live())).toBeUndefined();
  for (let n = 0; n < 50; n++) expect(limits.take(at("ia"), "g", live())).toEqual({ scope: "group", of: "requests", limit: 5 });
  for (let n = 0; n < 10; n++) expect(limits.take(at("ia"), "h", live())).toBeUndefined();
  expect(limits.take(at("ia"), "i", live())).toEqual({ scope: "sandbox", of: "requests", limit: 10 });
});
