import { existsSync, readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { prepareTestCache } from "@skerry/testkit";

/** The host and the versions that the figures belong to. */
export async function describeMachine(): Promise<Record<string, string | number>> {
  const cache = await prepareTestCache();
  const tools = JSON.parse(readFileSync(cache.toolsFile, "utf8")) as { runsc: { version: string }; runc: { path: string } };
  return {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    cgroups: existsSync(join("/sys/fs/cgroup", "cgroup.controllers")) ? "v2" : "v1",
    kvm: existsSync("/dev/kvm") ? "present, not used" : "none",
    node: process.version,
    runsc: tools.runsc.version,
    date: new Date().toISOString().slice(0, 10),
  };
}
