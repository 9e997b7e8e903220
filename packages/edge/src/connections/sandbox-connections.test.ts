import { AGENT_PORT } from "@skerry/wire";
import { expect, test } from "vitest";
import { SandboxConnections } from "./sandbox-connections.ts";

const at = (sandboxId: string, port = 80) => ({ sandboxId: sandboxId as never, port });

test("each sandbox has the same number of places, on all its ports together, and its agent has as many", () => {
  const connections = new SandboxConnections(2);
  const [first, second] = [new AbortController(), new AbortController()];
  expect(connections.take(at("ia", 80), first.signal)).toBe(true);
  expect(connections.take(at("ia", 81), second.signal)).toBe(true);
  expect(connections.take(at("ia", 82), new AbortController().signal)).toBe(false);
  expect(connections.take(at("ia", AGENT_PORT), new AbortController().signal)).toBe(true);
  expect(connections.take(at("ib"), new AbortController().signal)).toBe(true);
  first.abort();
  expect(connections.take(at("ia"), new AbortController().signal)).toBe(true);
  expect(connections.take(at("ia"), new AbortController().signal)).toBe(false);
});

test("nothing is left of requests that are over, and one that was over before is not counted", () => {
  const connections = new SandboxConnections(100);
  const over = Array.from({ length: 50 }, () => new AbortController());
  for (const [n, { signal }] of over.entries()) connections.take(at(`i${n % 7}`), signal);
  expect(connections.size).toBe(7);
  for (const one of over) one.abort();
  expect(connections.size).toBe(0);
  expect(connections.take(at("ia"), AbortSignal.abort())).toBe(true);
  expect(connections.size).toBe(0);
});
