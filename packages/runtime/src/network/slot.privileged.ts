// A slot is a prepared network namespace with one interface pair to the host, made ahead of time and used again.
//
// For runtimes with a user namespace the network namespace must belong to it, or root inside could neither bind port 80
// nor see /sys: both are made by one process and pinned, the network namespace in /run/netns, the user namespace in a
// file of ours. A pin is a mount, so nothing needs to keep running, and both are found by name after a crash.

import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError, runCommand, SubprocessError, spawnCommand } from "@skerry/base";
import { MS_BIND, mount, unmount } from "@skerry/base/linux";
import type { SlotAddresses } from "./addresses.ts";
import type { NetworkNames } from "./names.ts";
import { HOST_INOTIFY_INSTANCES, USER_LIMITS } from "./user-limits.ts";

const NETNS_DIR = "/run/netns";
/** Host ids of user namespaces start here: above every ordinary account and the usual subordinate ranges. */
const ID_BASE = 0x4000_0000;
const ID_RANGE = 65_536;

export interface NetworkSlot {
  readonly number: number;
  readonly addresses: SlotAddresses;
  readonly hostInterface: string;
  readonly namespacePath: string;
  readonly userNamespace?: { readonly path: string; readonly idBase: number };
}

export interface SlotRequest {
  readonly number: number;
  readonly names: NetworkNames;
  readonly addresses: SlotAddresses;
  /** Folder for pinned user namespaces, when the slot needs one. */
  readonly usernsDir?: string;
}

/** Preconditions: nothing of this slot exists (`destroySlot` first after a crash). */
export async function createSlot(request: SlotRequest): Promise<NetworkSlot> {
  const { number, names, addresses } = request;
  const namespace = names.namespace(number);
  const hostInterface = names.hostInterface(number);
  const userNamespace = request.usernsDir === undefined ? undefined : await createOwnedNamespace(request, request.usernsDir);
  await ip([
    ...(userNamespace ? [] : [`netns add ${namespace}`]),
    `link add ${hostInterface} type veth peer name eth0 netns ${namespace}`,
    `link set ${hostInterface} addrgenmode none`,
    `addr add ${addresses.host}/31 dev ${hostInterface}`,
    `link set ${hostInterface} up`,
  ]);
  const slot: NetworkSlot = {
    number,
    addresses,
    hostInterface,
    namespacePath: join(NETNS_DIR, namespace),
    ...(userNamespace ? { userNamespace } : {}),
  };
  await readdressSlot(slot, names);
  return slot;
}

/**
 * Gives the namespace's interface its address and route again: gVisor takes them over when it starts. With `quiet` the host's
 * kernel, which has the address until then, answers nobody on it: connections that the sandbox still has must not be reset.
 */
export async function readdressSlot(slot: NetworkSlot, names: NetworkNames, options: { quiet?: boolean } = {}): Promise<void> {
  const { guest, host } = slot.addresses;
  await ip(
    [
      "link set lo up",
      "link set eth0 addrgenmode none",
      // Also where an earlier attempt was cut off: only a new address brings its local route with it.
      "addr flush dev eth0",
      `addr add ${guest}/31 dev eth0`,
      ...(options.quiet ? [`route del table local local ${guest} dev eth0`] : []),
      "link set eth0 up",
      `route replace default via ${host} dev eth0`,
    ],
    ["-n", names.namespace(slot.number)],
  );
}

/**
 * Lets nothing through to the sandbox, and tells nobody: whoever sends finds it slow and sends again. What a frozen gVisor sandbox
 * gets it still acknowledges, so after its memory was written that would be lost.
 */
export async function holdTraffic(slot: NetworkSlot): Promise<void> {
  await ip([`route replace blackhole ${slot.addresses.guest}/32`]);
}

/** Ends `holdTraffic`; nothing happens when it was not held. */
export async function letTrafficGo(slot: NetworkSlot): Promise<void> {
  try {
    await ip([`route del blackhole ${slot.addresses.guest}/32`]);
  } catch (error) {
    if (!(error instanceof SubprocessError) || !/No such process/.test(error.stderr)) throw error;
  }
}

export async function destroySlot(options: { number: number; names: NetworkNames; usernsDir: string }): Promise<void> {
  const { number, names, usernsDir } = options;
  // The interface first: a namespace is taken down by the kernel later, in its own time.
  await ipUnlessGone([`link del ${names.hostInterface(number)}`]);
  await ipUnlessGone([`netns del ${names.namespace(number)}`]);
  const pin = join(usernsDir, String(number));
  unmount(pin, { detach: true });
  rmSync(pin, { force: true });
}

/** Numbers of all slots of this instance that the host has anything of. */
export function listSlots(options: { names: NetworkNames; usernsDir: string }): number[] {
  const { names, usernsDir } = options;
  const numbers = new Set<number>();
  for (const namespace of readDirIfThere(NETNS_DIR)) {
    const slot = names.slotOf(namespace);
    if (slot !== undefined) numbers.add(slot);
  }
  for (const name of readDirIfThere("/sys/class/net")) {
    if (name.startsWith(names.interfacePrefix)) numbers.add(Number(name.slice(names.interfacePrefix.length)));
  }
  for (const name of readDirIfThere(usernsDir)) numbers.add(Number(name));
  return [...numbers].sort((a, b) => a - b);
}

/** Prefixes of every route of this machine, to keep away from. */
export async function routedPrefixes(): Promise<string[]> {
  const { stdout } = await runCommand("ip", ["-4", "-json", "route", "show", "table", "all"]);
  const routes = JSON.parse(stdout || "[]") as { dst?: string }[];
  return routes.map(({ dst = "default" }) => (dst === "default" ? "0.0.0.0/0" : dst.includes("/") ? dst : `${dst}/32`));
}

async function createOwnedNamespace(request: SlotRequest, usernsDir: string): Promise<{ path: string; idBase: number }> {
  const idBase = ID_BASE + request.number * ID_RANGE;
  mkdirSync(usernsDir, { recursive: true, mode: 0o700 });
  return inNewNamespaces(["--user", "--net"], idBase, async (pid) => {
    await limitUserNamespace(`/proc/${pid}/ns/user`);
    await ip([`netns attach ${request.names.namespace(request.number)} ${pid}`]);
    const path = join(usernsDir, String(request.number));
    closeSync(openSync(path, "w", 0o600));
    mount({ source: `/proc/${pid}/ns/user`, target: path, type: "none", flags: MS_BIND });
    return { path, idBase };
  });
}

/** A user namespace that lasts as long as the descriptor: to show files as a sandbox with ids from `idBase` on would see them. */
export function openUserNamespace(idBase: number): Promise<number> {
  return inNewNamespaces(["--user"], idBase, async (pid) => openSync(`/proc/${pid}/ns/user`, "r"));
}

async function inNewNamespaces<T>(kinds: readonly string[], idBase: number, work: (pid: number) => Promise<T>): Promise<T> {
  // `cat` answers once it runs, and by then unshare has made them all.
  const holder = spawnCommand("unshare", [...kinds, "--", "cat"], { stdin: "pipe", stdout: "pipe" });
  try {
    await new Promise<void>((resolve, reject) => {
      holder.once("error", reject);
      holder.once("exit", (code) =>
        reject(new PlatformError("namespace_failed", `unshare ended with exit code ${code}: are user namespaces allowed?`)),
      );
      holder.stdout?.once("data", () => resolve());
      holder.stdin?.on("error", () => {});
      holder.stdin?.write("\n");
    });
    const { pid = 0 } = holder;
    const mapping = `0 ${idBase} ${ID_RANGE}`;
    writeFileSync(`/proc/${pid}/uid_map`, mapping);
    writeFileSync(`/proc/${pid}/gid_map`, mapping);
    return await work(pid);
  } finally {
    holder.kill("SIGKILL");
  }
}

/** Only a process inside the namespace can set its limits. */
async function limitUserNamespace(path: string): Promise<void> {
  const script = USER_LIMITS.map(({ name, value }) => `echo ${value} > /proc/sys/user/${name}`).join(" && ");
  await runCommand("nsenter", [`--user=${path}`, "--", "/bin/sh", "-c", script]);
}

/** Lets the host have as many inotify instances as its sandboxes may use. Never lowers what an operator has set. */
export function raiseHostLimits(): void {
  const file = "/proc/sys/fs/inotify/max_user_instances";
  if (Number(readFileSync(file, "utf8")) < HOST_INOTIFY_INSTANCES) writeFileSync(file, String(HOST_INOTIFY_INSTANCES));
}

async function ip(lines: readonly string[], args: readonly string[] = []): Promise<void> {
  await runCommand("ip", [...args, "-batch", "-"], { input: `${lines.join("\n")}\n` });
}

async function ipUnlessGone(lines: readonly string[]): Promise<void> {
  try {
    await ip(lines);
  } catch (error) {
    if (!(error instanceof SubprocessError) || !/Cannot find device|No such file or directory/.test(error.stderr)) throw error;
  }
}

function readDirIfThere(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
