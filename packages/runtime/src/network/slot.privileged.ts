// A slot is a network namespace with an interface pair to the host. The node creates slots ahead and reuses them.
//
// For runtimes with a user namespace, the network namespace must belong to the user namespace. Otherwise root inside could neither bind
// port 80 nor mount /sys. One process creates both, and mounts pin them: the network namespace in /run/netns, the user namespace in a
// file of the node. So no process needs to keep running, and both are found by name after a crash.

import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError, runCommand, SubprocessError, spawnCommand } from "@skerry/base";
import { MS_BIND, mount, unmount } from "@skerry/base/linux";
import type { SlotAddresses } from "./addresses.ts";
import type { NetworkNames } from "./names.ts";
import { HOST_INOTIFY_INSTANCES, USER_LIMITS } from "./user-limits.ts";

const NETNS_DIR = "/run/netns";
/** First host id of user namespaces: above ordinary accounts and the usual subordinate ranges. */
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
  /** Folder for the pinned user namespace, if the slot needs one. */
  readonly usernsDir?: string;
}

/** Preconditions: nothing of this slot exists (call `destroySlot` first after a crash). */
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
    // The kernel asks for the sandbox's neighbour address only with a link-local address of its own, when it forwards a packet.
    ...(addresses.ipv6 ? [`${addresses.ipv6.host}/127`, "fe80::1/64"].map((own) => `addr add ${own} dev ${hostInterface} nodad`) : []),
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
 * Restores the address and the route of the namespace's interface, which gVisor removes when it starts. With `quiet` the host's kernel
 * does not answer on the address of IPv4 until then, so that it does not reset connections that the sandbox still has. On that of IPv6 it
 * does, because it makes the route for it at a time of its own: `holdTraffic` keeps packets away.
 */
export async function readdressSlot(slot: NetworkSlot, names: NetworkNames, options: { quiet?: boolean } = {}): Promise<void> {
  const { guest, host, ipv6 } = slot.addresses;
  await ip(
    [
      "link set lo up",
      "link set eth0 addrgenmode none",
      // An earlier attempt may have left the address, and only a new address creates its local route.
      "addr flush dev eth0",
      `addr add ${guest}/31 dev eth0`,
      ...(options.quiet ? [`route del table local local ${guest} dev eth0`] : []),
      "link set eth0 up",
      `route replace default via ${host} dev eth0`,
      ...(ipv6 ? [`addr add ${ipv6.guest}/127 dev eth0 nodad`, `route replace default via ${ipv6.host} dev eth0`] : []),
    ],
    ["-n", names.namespace(slot.number)],
  );
}

/**
 * Drops all packets to the sandbox silently, so that senders retransmit later. A frozen gVisor sandbox still acknowledges what it
 * receives, and would lose data that arrives after its memory was written.
 */
export async function holdTraffic(slot: NetworkSlot): Promise<void> {
  await ip(blackholes(slot).map((prefix) => `route replace blackhole ${prefix}`));
}

/** Ends `holdTraffic`. Does nothing when traffic is not held. */
export async function letTrafficGo(slot: NetworkSlot): Promise<void> {
  for (const prefix of blackholes(slot)) {
    try {
      await ip([`route del blackhole ${prefix}`]);
    } catch (error) {
      if (!(error instanceof SubprocessError) || !/No such process/.test(error.stderr)) throw error;
    }
  }
}

function blackholes({ addresses: { guest, ipv6 } }: NetworkSlot): string[] {
  return [`${guest}/32`, ...(ipv6 ? [`${ipv6.guest}/128`] : [])];
}

export async function destroySlot(options: { number: number; names: NetworkNames; usernsDir: string }): Promise<void> {
  const { number, names, usernsDir } = options;
  // The interface goes first, because the kernel removes a namespace asynchronously.
  await ipUnlessGone([`link del ${names.hostInterface(number)}`]);
  await ipUnlessGone([`netns del ${names.namespace(number)}`]);
  const pin = join(usernsDir, String(number));
  unmount(pin, { detach: true });
  rmSync(pin, { force: true });
}

/** Numbers of the slots of this instance of which anything exists on the host. */
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

/** Prefixes of all routes of the host, which the pool must not overlap. */
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

/** Opens a user namespace that maps ids from `idBase` on, as in a sandbox. It exists as long as the descriptor is open. */
export function openUserNamespace(idBase: number): Promise<number> {
  return inNewNamespaces(["--user"], idBase, async (pid) => openSync(`/proc/${pid}/ns/user`, "r"));
}

async function inNewNamespaces<T>(kinds: readonly string[], idBase: number, work: (pid: number) => Promise<T>): Promise<T> {
  // When `cat` answers, unshare has created all namespaces.
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

/** Sets the limits of a user namespace, which only a process inside it can do. */
async function limitUserNamespace(path: string): Promise<void> {
  const script = USER_LIMITS.map(({ name, value }) => `echo ${value} > /proc/sys/user/${name}`).join(" && ");
  await runCommand("nsenter", [`--user=${path}`, "--", "/bin/sh", "-c", script]);
}

/** Raises the host's limit of inotify instances to the need of all sandboxes. Never lowers the setting of an operator. */
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
