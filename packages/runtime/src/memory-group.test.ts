import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { MemoryGroup } from "./memory-group.privileged.ts";

const MIB = 1024 * 1024;
const root = mkdtempSync(join(tmpdir(), "skerry-memory-group-"));
afterEach(() => rmSync(root, { recursive: true, force: true }));

function writeGroup(files: Readonly<Record<string, string>>): void {
  mkdirSync(join(root, "skerry-1a2b/i1"), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, "skerry-1a2b/i1", name), text);
}

const V1 = {
  "memory.usage_in_bytes": `${700 * MIB}\n`,
  "memory.stat": [
    `cache ${650 * MIB}`,
    `rss ${1 * MIB}`,
    "shmem 0",
    `total_cache ${650 * MIB}`,
    `total_rss ${40 * MIB}`,
    "total_rss_huge 12345",
    `total_shmem ${300 * MIB}`,
    `dirty ${1 * MIB}`,
    `total_dirty ${20 * MIB}`,
    `total_writeback ${5 * MIB}`,
    `total_inactive_file ${350 * MIB}`,
    "",
  ].join("\n"),
  "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n",
};

const V2 = {
  "memory.current": `${700 * MIB}\n`,
  "memory.stat": [
    `anon ${40 * MIB}`,
    `file ${650 * MIB}`,
    `kernel ${10 * MIB}`,
    `kernel_stack ${1 * MIB}`,
    `pagetables ${2 * MIB}`,
    "sec_pagetables 4096",
    `sock ${3 * MIB}`,
    `shmem ${300 * MIB}`,
    `file_dirty ${20 * MIB}`,
    `file_writeback ${5 * MIB}`,
    "anon_thp 12345",
    "inactive_anon 1",
    `slab_reclaimable ${200 * MIB}`,
    `slab_unreclaimable ${4 * MIB}`,
    "",
  ].join("\n"),
  "memory.events": "low 0\nhigh 3\nmax 90\noom 8\noom_kill 7\noom_group_kill 0\n",
};

it.each([
  // Version 1 does not report which part of the kernel memory is reclaimable.
  ["1", V1, 340],
  ["2", V2, 350],
])("in version %s, page cache is used but not held, shared memory and that of processes is", (_version, files, heldMib) => {
  writeGroup(files);
  const group = MemoryGroup.open("/skerry-1a2b/i1", [join(root, "none"), root]);
  expect(group.usageBytes()).toBe(700 * MIB);
  expect(group.heldBytes()).toBe(heldMib * MIB);
  expect(group.unwrittenBytes()).toBe(25 * MIB);
  expect(group.kernelKills()).toBe(7);
  writeGroup({ ...files, [files === V1 ? "memory.usage_in_bytes" : "memory.current"]: "5\n" });
  expect(group.usageBytes()).toBe(5);
  group.close();
});

it("throws when no hierarchy has the cgroup with a memory controller", () => {
  writeGroup({ "pids.current": "1\n" });
  expect(() => MemoryGroup.open("/skerry-1a2b/i1", [root])).toThrow("no memory controller");
});
