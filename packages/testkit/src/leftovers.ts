// Finds everything that a platform has on the host, without the platform's own code. A clean-up that forgets a kind of resource must not be
// checked with the list that forgot it.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand } from "@skerry/base";

export interface HostTraces {
  readonly processes: readonly string[];
  readonly namespaces: readonly string[];
  readonly interfaces: readonly string[];
  readonly tables: readonly string[];
  readonly mounts: readonly string[];
  /** The files behind those that are mounted nowhere. */
  readonly loopDevices: readonly string[];
  readonly cgroups: readonly string[];
}

/** The instance of the platform with this data folder: four hexadecimal digits in the names of all its resources. */
export function instanceOf(dataDir: string): string {
  return createHash("sha256").update(realpathSync(dataDir)).digest("hex").slice(0, 4);
}

/** Finds everything on this host that belongs to the platform with this data folder. */
export async function readHostTraces(dataDir: string): Promise<HostTraces> {
  const root = realpathSync(dataDir);
  const instance = instanceOf(root);
  const ours = new RegExp(`\\bsk${instance}|skerry[-_]${instance}\\b`);
  return {
    processes: listProcesses(root, ours),
    namespaces: (existsSync("/run/netns") ? readdirSync("/run/netns") : []).filter((name) => ours.test(name)),
    interfaces: readdirSync("/sys/class/net").filter((name) => ours.test(name)),
    tables: (await runCommand("nft", ["list", "tables"])).stdout.split("\n").filter((line) => ours.test(line)),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[4] ?? "")
      .filter((path) => path.startsWith(`${root}/`) || ours.test(path)),
    loopDevices: idleLoopDevices(root),
    cgroups: listCgroups(ours),
  };
}

/** One line for each trace; no lines when nothing is left. */
export function describeTraces(traces: HostTraces): string[] {
  return Object.entries(traces).flatMap(([kind, found]) => (found as readonly string[]).map((name) => `${kind}: ${name}`));
}

/**
 * Waits until nothing of this platform is left, and returns what is still there after 30 s. The kernel ends a killed process, and removes
 * its cgroup, a moment later, and a process that is just starting holds a copy of all mounts for a moment.
 */
export async function untilNothingIsLeft(dataDir: string, limitMs = 30_000): Promise<string[]> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const left = describeTraces(await readHostTraces(dataDir));
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(50);
  }
}

/** All loop devices of this host, and the files behind them. The kernel adds " (deleted)" to files that were removed. */
export function loopDevices(): { readonly device: string; readonly file: string }[] {
  return readdirSync("/sys/block").flatMap((name) => {
    try {
      const file = name.startsWith("loop") && readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").trim();
      return file ? [{ device: `/dev/${name}`, file }] : [];
    } catch {
      // It is not in use, or not any more.
      return [];
    }
  });
}

/**
 * The files below `root` whose loop devices are mounted nowhere. Others may hold copies of this platform's mounts, with the devices, for as
 * long as they run: all programs with a mount namespace of their own. `ip netns exec` gives one to all that it starts.
 */
export function idleLoopDevices(root: string): string[] {
  const ours = () => loopDevices().filter(({ file }) => file.startsWith(`${root}/`));
  if (ours().length === 0) return [];
  const mounts = readdirSync("/proc").map((name) => {
    try {
      return /^\d+$/.test(name) ? readFileSync(`/proc/${name}/mountinfo`, "utf8") : "";
    } catch {
      // The process has ended, and its devices with it.
      return "";
    }
  });
  // Looked up again: a device that was released since then is not idle.
  return ours()
    .filter(({ device }) => !mounts.some((text) => text.includes(` ${device} `)))
    .map(({ file }) => file);
}

function listProcesses(root: string, ours: RegExp): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const text = (file: string) => readFileSync(`/proc/${pid}/${file}`, "utf8");
      try {
        const commandLine = text("cmdline").replaceAll("\0", " ");
        const belongs = commandLine.includes(root) || text("environ").includes(`SKERRY_DATA=${root}`) || ours.test(text("cgroup"));
        const inside = belongs || (readlinkSync(`/proc/${pid}/cwd`).startsWith(`${root}/`) && text("stat").length > 0);
        return inside ? [`${pid} ${commandLine.slice(0, 200)}`] : [];
      } catch {
        // The process has ended, or is a kernel thread.
        return [];
      }
    });
}

function listCgroups(ours: RegExp): string[] {
  return foldersIn("/sys/fs/cgroup").flatMap((name) => {
    const path = `/sys/fs/cgroup/${name}`;
    // On version 2 this is the cgroup itself. On version 1 it is one level down, in each controller.
    if (ours.test(name)) return [path];
    return foldersIn(path).flatMap((child) => (ours.test(child) ? [`${path}/${child}`] : []));
  });
}

/** Names of folders; [] for one that is gone. Cgroups of others end at any moment. */
export function foldersIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return [];
  }
}
