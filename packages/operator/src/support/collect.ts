// What an archive for a bug report contains. Every text goes through the scrubber; files of the data folder are never copied as they are.

import { open, readFile } from "node:fs/promises";
import { arch, cpus, freemem, loadavg, release, totalmem, uptime, version } from "node:os";
import { type DataFolder, readJsonFile, readSettings } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import type { Finding } from "../doctor/check.ts";
import type { Status } from "../status/read-status.ts";
import { MARK } from "./scrub.ts";
import { entriesOf, SECRET_SETTING } from "./secret-values.ts";

/** Of the end of the log. */
const LOG_BYTES = 4 * 1024 * 1024;

export interface Collected {
  readonly name: string;
  readonly text: string;
}

export interface Facts {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly status: Status;
  readonly findings: readonly ({ readonly name: string } & Finding)[];
  /** Of the platform's process, or of this one if there is none. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

export async function collect({ context, folder, status, findings, variables }: Facts): Promise<readonly Collected[]> {
  const json = (name: string, value: unknown) => ({ name: `${name}.json`, text: `${JSON.stringify(value, null, 2)}\n` });
  return [
    json("versions", {
      skerry: context.version,
      node: process.version,
      tools: await readJsonFile(folder.toolsFile).catch(() => undefined),
      agent: await readJsonFile(folder.agentFile).catch(() => undefined),
      template: await readJsonFile(folder.templateFile).catch(() => undefined),
    }),
    json("status", status),
    json("doctor", findings),
    json("settings", { folder: await readSettings(folder).catch(() => undefined), variables: shownVariables(variables) }),
    json("host", await hostFacts()),
    json("counts", await countFiles(folder)),
    { name: "skerry.log", text: await endOf(folder.logFile) },
  ];
}

/** The platform's variables. Of a secret one, only that it is set. */
export function shownVariables(variables: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  const own = Object.entries(variables).filter(([name, value]) => name.startsWith("SKERRY_") && value !== undefined);
  return Object.fromEntries(own.map(([name, value = ""]) => [name, SECRET_SETTING.test(name) && !name.endsWith("_FILE") ? MARK : value]));
}

async function hostFacts(): Promise<unknown> {
  const text = async (file: string) => (await readFile(file, "utf8").catch(() => "")).trim();
  return {
    kernel: `${release()} ${version()}`,
    architecture: arch(),
    distribution: (await text("/etc/os-release")).match(/^PRETTY_NAME="?([^"\n]*)/m)?.[1],
    cpus: cpus().length,
    cpuModel: cpus()[0]?.model,
    memoryBytes: totalmem(),
    freeMemoryBytes: freemem(),
    loadAverage: loadavg(),
    uptimeSeconds: uptime(),
    virtualization: await text("/sys/hypervisor/type"),
    cgroups: {
      controllers: await text("/sys/fs/cgroup/cgroup.controllers"),
      delegated: await text("/sys/fs/cgroup/cgroup.subtree_control"),
    },
    userNamespaces: await text("/proc/sys/user/max_user_namespaces"),
    filesLimit: await text("/proc/sys/fs/file-max"),
    inotify: {
      instances: await text("/proc/sys/fs/inotify/max_user_instances"),
      watches: await text("/proc/sys/fs/inotify/max_user_watches"),
    },
    loopDevices: (await entriesOf("/sys/block")).filter((name) => name.startsWith("loop")).length,
    pressure: { cpu: await text("/proc/pressure/cpu"), memory: await text("/proc/pressure/memory"), io: await text("/proc/pressure/io") },
    filesystems: (await text("/proc/filesystems"))
      .split("\n")
      .filter((line) => !line.startsWith("nodev"))
      .map((line) => line.trim()),
  };
}

async function countFiles(folder: DataFolder): Promise<unknown> {
  const count = async (path: string) => (await entriesOf(path)).length;
  return {
    sandboxes: await count(`${folder.nodeDir}/sandboxes`),
    images: await count(`${folder.nodeDir}/images`),
    areas: await count(`${folder.nodeDir}/areas`),
    layers: await count(folder.layersDir),
    blobs: await count(folder.blobsDir),
  };
}

async function endOf(path: string): Promise<string> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const length = Math.min(size, LOG_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const text = buffer.subarray(0, bytesRead).toString("utf8");
    // The first line is only the end of one, in which no form of a secret would be found.
    return size > length ? text.slice(text.indexOf("\n") + 1) : text;
  } catch {
    return "";
  }
}
