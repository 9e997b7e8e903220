import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { agentTreesInUse, clusterOfNode, hasContainers, releaseReserve } from "./folder.privileged.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "node-folder-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(file: string, content: unknown): void {
  const path = join(dir, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}

const identity = { sandboxId: "", templateId: "t", envVars: {}, accessToken: "", defaultUser: "user", defaultWorkdir: "", memoryMb: 512 };
const makeup = (tree: string) => ({
  runtime: "gvisor",
  templateId: "t",
  buildId: "b",
  size: { cpuCount: 2, memoryMb: 512, diskSizeMb: 1024 },
  layers: [],
  frozenAreas: [],
  agentDir: `/data/agent/${tree}`,
  agentVersion: "1",
  allowInternetAccess: true,
  identity,
  createdAtMs: 1,
});
const sandbox = (tree: string) => ({
  version: 2,
  ...makeup(tree),
  containerId: "c",
  sandboxId: "s",
  state: "running",
  area: "a",
  slot: { number: 1, addresses: { host: "h", guest: "g" }, hostInterface: "i", namespacePath: "n" },
  cgroupPath: "/c",
});
const image = (tree: string) => ({ version: 1, ...makeup(tree), imageId: "m", kind: "pause", agentUnresponsive: false });

test("a folder that does not exist yet holds nothing", () => {
  const missing = join(dir, "missing");
  expect(hasContainers(missing)).toBe(false);
  expect(agentTreesInUse(missing)).toEqual(new Set());
  expect(clusterOfNode(missing)).toEqual({ version: 1, id: "", file: join(missing, "cluster.json") });
  releaseReserve(missing);
});

test("agent trees of containers and images are in use; a damaged record names none", () => {
  write("sandboxes/one/sandbox.json", sandbox("aaaa"));
  write("sandboxes/cut-off/sandbox.json", '{"agentDir":');
  mkdirSync(join(dir, "sandboxes/half-made"));
  write("images/two/image.json", image("bbbb"));
  expect(agentTreesInUse(dir)).toEqual(new Set(["aaaa", "bbbb"]));
  expect(hasContainers(dir)).toBe(true);
});

test("a record of a later version is refused", () => {
  write("images/two/image.json", { ...image("bbbb"), version: 99 });
  expect(() => agentTreesInUse(dir)).toThrow(expect.objectContaining({ code: "record_unreadable" }));
});

test("the cluster and its last refusal are told; the reserve is released", () => {
  const refused = { id: "other", at: "2026-01-01T00:00:00.000Z" };
  write("cluster.json", { id: "own", refused });
  write("reserve", "x");
  expect(clusterOfNode(dir)).toEqual({ version: 1, id: "own", refused, file: join(dir, "cluster.json") });
  releaseReserve(dir);
  expect(existsSync(join(dir, "reserve"))).toBe(false);
});
