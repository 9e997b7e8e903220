// A node's process for tests: its RPC, tunnels into sandboxes, SIGKILL, and everything that the node has on the host.

import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, linkSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createLogger, runCommand } from "@skerry/base";
import { openLayerStore } from "@skerry/layers";
import { cleanUpNode } from "@skerry/node";
import { listCgroups } from "@skerry/runtime";
import { unmountBelow } from "@skerry/test-runner";
import { instanceOf, loopDevices } from "@skerry/testkit";
import { bundleProgram } from "@skerry/testkit/bundle-program";
import { writeBusyboxImage } from "@skerry/testkit/busybox";
import { createTestNodeFolder } from "@skerry/testkit/run-folder";
import { testTools } from "@skerry/testkit/tools";
import { waitUntil } from "@skerry/testkit/wait-until";
import { NodeService, type SandboxSpecSchema } from "@skerry/wire/node";
import { type FromNodeProcess, type NodeProcessOptions, nodeConfigOf, type ToNodeProcess } from "./node-process.ts";

const AGENT_PORT = 49_983;
/** Bundled once per test process, because tests start it many times. */
let bundle: Promise<string> | undefined;

export interface ChildNodeOptions {
  readonly runtime: "gvisor" | "runc";
  readonly poolSize?: number;
  /** Replaces the pinned runsc. */
  readonly runsc?: string;
  /** Puts the node's folder on a disk of its own, of this size. */
  readonly diskMb?: number;
  readonly timeLimits?: NodeProcessOptions["timeLimits"];
  /**
   * Gives the node its own mount namespace, for mounts that only the node sees (`nsenter --mount`). The node's own mounts still show
   * everywhere.
   */
  readonly ownMounts?: boolean;
}

export interface JournalRecord {
  readonly file: string;
  readonly sandboxId: string;
  readonly containerId: string;
  readonly area: string;
  readonly cgroupPath: string;
  readonly slot: { readonly hostInterface: string };
  readonly process: { readonly pid: number };
}

export type Spec = Exclude<MessageInitShape<typeof SandboxSpecSchema>, Message>;

export class ChildNode implements AsyncDisposable {
  readonly options: NodeProcessOptions;
  readonly layer: string;
  readonly #root: string;
  readonly #ownMounts: boolean;
  #child: ChildProcess | undefined;
  #port = 0;

  private constructor(own: { root: string; layer: string; ownMounts: boolean }, options: NodeProcessOptions) {
    this.#root = own.root;
    this.layer = own.layer;
    this.#ownMounts = own.ownMounts;
    this.options = options;
  }

  static async start(options: ChildNodeOptions): Promise<ChildNode> {
    const root = await createTestNodeFolder();
    const layersDir = join(root, "layers");
    const layers = await openLayerStore(layersDir);
    const staged = await layers.stagingDir();
    writeBusyboxImage(staged);
    writeFileSync(join(staged, "home/linked"), "of the template");
    linkSync(join(staged, "home/linked"), join(staged, "home/linked-too"));
    const layer = await layers.adopt(staged);
    mkdirSync(join(root, "node"));
    if (options.diskMb !== undefined) await mountDisk(join(root, "disk"), { sizeMb: options.diskMb, target: join(root, "node") });
    if (options.ownMounts) await shareMounts(join(root, "node"));
    const { runsc, runc } = testTools();
    const node = new ChildNode(
      { root, layer, ownMounts: options.ownMounts ?? false },
      {
        dir: join(root, "node"),
        layersDir,
        instance: instanceOf(root),
        runtime: options.runtime,
        runsc: options.runsc ?? runsc,
        runc,
        poolSize: options.poolSize ?? 0,
        secret: "the cluster secret of this test",
        ...(options.timeLimits && { timeLimits: options.timeLimits }),
      },
    );
    await node.up();
    return node;
  }

  get dir(): string {
    return this.options.dir;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async up(): Promise<void> {
    bundle ??= bundleProgram(join(import.meta.dirname, "node-process.ts"));
    const script = await bundle;
    const log = openSync(join(this.#root, "log"), "a");
    // The next start finds and kills the process by this name if this test is killed.
    const env = { ...process.env, SKERRY_DATA: this.#root };
    const program = this.#ownMounts
      ? { execPath: "unshare", execArgv: ["--mount", "--propagation=unchanged", process.execPath] }
      : { execArgv: [] };
    const child = fork(script, [JSON.stringify(this.options)], { stdio: ["ignore", log, log, "ipc"], env, ...program });
    closeSync(log);
    this.#child = child;
    const failed = once(child, "exit").then(() => {
      throw new Error(`the node did not start:\n${this.log().slice(-3_000)}`);
    });
    const [message] = (await Promise.race([once(child, "message"), failed])) as [{ port: number }];
    failed.catch(() => {});
    this.#port = message.port;
  }

  /** Kills the node with SIGKILL. */
  async kill9(): Promise<void> {
    const exited = this.exited();
    this.#child?.kill("SIGKILL");
    await exited;
  }

  async stop(): Promise<void> {
    const exited = this.exited();
    this.#send({ stop: true });
    await exited;
  }

  /** The signal that ended the process, or its exit code. */
  async exited(): Promise<string | number | null> {
    const child = this.#child;
    if (!child) return null;
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    return child.signalCode ?? child.exitCode;
  }

  /** From now on the process kills itself when it reaches this point. */
  async arm(point: string | null): Promise<void> {
    const answered = once(this.#child as ChildProcess, "message") as Promise<[FromNodeProcess]>;
    this.#send({ arm: point });
    await answered;
  }

  #send(message: ToNodeProcess): void {
    this.#child?.send(message);
  }

  get client(): Client<typeof NodeService> {
    const interceptor =
      (next: (request: never) => Promise<never>) =>
      (request: { header: Headers }): Promise<never> => {
        request.header.set("Authorization", `Bearer ${this.options.secret}`);
        return next(request as never);
      };
    const baseUrl = `http://127.0.0.1:${this.#port}`;
    return createClient(NodeService, createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [interceptor as never] }));
  }

  spec(sandboxId: string, overrides: Spec = {}): Spec {
    return {
      sandboxId,
      templateId: "t",
      buildId: "b",
      layers: [this.layer],
      diskSizeMb: 64,
      cpuCount: 1,
      memoryMb: 256,
      accessToken: "a-token",
      options: {},
      defaultUser: "user",
      ...overrides,
    };
  }

  /** Adds a layer like the first one, with its name in `/home/which`. This process adopts it, not the node. */
  async addLayer(name: string, holder?: string): Promise<string> {
    const layers = await openLayerStore(this.options.layersDir);
    const staged = await layers.stagingDir();
    writeBusyboxImage(staged);
    writeFileSync(join(staged, "home/which"), name);
    await runCommand("find", [staged, "-exec", "touch", "-h", "-d", "@1700000000", "{}", "+"]);
    return await layers.adopt(staged, holder === undefined ? {} : { holder });
  }

  /** The directories of layers, complete or partly removed. */
  layerNames(): string[] {
    const { layersDir } = this.options;
    const removed = readdirSync(join(layersDir, "trash")).map((name) => `trash/${name}`);
    return [...readdirSync(layersDir).filter((name) => /^[0-9a-f]{24}$/.test(name)), ...removed];
  }

  /** A raw connection to a port of a sandbox. */
  dial(sandboxId: string, port: number): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const outgoing = request({
        port: this.#port,
        method: "CONNECT",
        path: `${sandboxId}:${port}`,
        headers: { "Proxy-Authorization": `Bearer ${this.options.secret}` },
      });
      outgoing.once("error", reject);
      outgoing.once("connect", (response, socket) => {
        if (response.statusCode === 200) return resolve(socket as Socket);
        socket.destroy();
        reject(new Error(`the tunnel to ${sandboxId}:${port} was refused with ${response.statusCode}`));
      });
      outgoing.end();
    });
  }

  async writeFile(sandboxId: string, path: string, body: string, token = "a-token"): Promise<void> {
    const { status, text } = await this.#files(sandboxId, { method: "POST", path, body, token });
    if (status !== 200) throw new Error(`writing ${path} answered ${status}: ${text}`);
  }

  /** The text of the file, or the status of a failed request. */
  async readFile(sandboxId: string, path: string, token = "a-token"): Promise<string | number> {
    const { status, text } = await this.#files(sandboxId, { method: "GET", path, token });
    return status === 200 ? text : status;
  }

  async #files(sandboxId: string, options: { method: string; path: string; token: string; body?: string }) {
    const socket = await this.dial(sandboxId, AGENT_PORT);
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const outgoing = request({
        createConnection: () => socket,
        method: options.method,
        path: `/files?path=${options.path}&username=root`,
        headers: { "X-Access-Token": options.token, "Content-Type": "application/octet-stream", Host: "x" },
      });
      outgoing.on("error", reject);
      outgoing.on("response", (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("error", reject);
        response.on("end", () => {
          socket.destroy();
          resolve({ status: response.statusCode ?? 0, text });
        });
      });
      outgoing.end(options.body);
    });
  }

  /** The pid on the host of the process whose end ends the sandbox. */
  firstProcessOf(sandboxId: string): number {
    return this.recordOf(sandboxId).process.pid;
  }

  /** The node's record of a sandbox. */
  recordOf(sandboxId: string): JournalRecord {
    const dir = join(this.dir, "sandboxes");
    for (const name of readdirSync(dir)) {
      const file = join(dir, name, "sandbox.json");
      const record = JSON.parse(readFileSync(file, "utf8")) as Omit<JournalRecord, "file">;
      if (record.sandboxId === sandboxId) return { ...record, file };
    }
    throw new Error(`the node has no record of ${sandboxId}`);
  }

  /** Whether the firewall has rules for this sandbox alone. */
  isRestricted(sandboxId: string): boolean {
    const { hostInterface } = this.recordOf(sandboxId).slot;
    return execFileSync("nft", ["list", "ruleset"], { encoding: "utf8" }).includes(`jump only_${hostInterface}`);
  }

  async running(): Promise<string[]> {
    return (await this.client.listSandboxes({})).sandboxes.map(({ sandboxId }) => sandboxId);
  }

  async images(): Promise<string[]> {
    return (await this.client.listImages({})).imageIds;
  }

  /** Everything that the node has on the host, apart from what it prepares in advance. [] if it holds nothing. */
  traces(): string[] {
    const below = (folder: string) => readdirSync(join(this.dir, folder)).map((name) => `${folder}/${name}`);
    const areas = below("areas").filter((path) => {
      const upper = join(this.dir, path, "fs/u");
      return readdirSync(join(this.dir, path)).length === 0 || entriesOf(upper) !== 0;
    });
    const mounts = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "")
      .filter((path) => ["sandboxes", "trash", "volumes"].some((folder) => path.startsWith(`${this.dir}/${folder}/`)));
    const groups = listCgroups(`/skerry-${this.options.instance}`).map((id) => `cgroup ${id}`);
    const runtimeStates = ["runsc", "runc"].flatMap((name) =>
      readdirSync(join(this.dir, name))
        .filter((file) => file !== "null-netns")
        .map((file) => `${name}/${file}`),
    );
    const loops = loopDevices()
      .map(({ file }) => file)
      .filter((file) => file.startsWith(`${this.dir}/`) && (file.endsWith("(deleted)") || areas.some((area) => file.includes(area))));
    const processes = this.processes();
    return [...below("sandboxes"), ...below("trash"), ...areas, ...mounts, ...groups, ...runtimeStates, ...loops, ...processes];
  }

  /** The command lines of all runtime processes of this node. */
  processes(): string[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readText(`/proc/${pid}/cmdline`).replaceAll("\0", " "))
      .filter((line) => line.includes(`--root=${this.dir}/`) || line.includes(`--bundle=${this.dir}/`));
  }

  /** Number of sandboxes in the pool. If the runtime keeps memory, it excludes the one from which the template's image is made. */
  ready(): number {
    const isFromImage = this.options.runtime === "gvisor";
    return readdirSync(join(this.dir, "sandboxes"))
      .map((name) => readText(join(this.dir, "sandboxes", name, "sandbox.json")))
      .filter((record) => record.includes('"state":"pooled"') && record.includes('"isRestored":true') === isFromImage).length;
  }

  namespaces(): string[] {
    return entriesOf("/run/netns") === undefined ? [] : readdirSync("/run/netns").filter((name) => name.includes(this.options.instance));
  }

  /** Kills and deletes everything, and expects that nothing is left. */
  async empty(): Promise<void> {
    for (const sandboxId of await this.running()) await this.client.killSandbox({ sandboxId });
    for (const imageId of await this.images()) await this.client.deleteImage({ imageId });
    for (const { volumeId } of (await this.client.listVolumes({})).volumes) await this.client.deleteVolume({ volumeId, force: true });
    await waitUntil("nothing is left", () => this.traces().length === 0).catch(() => {
      throw new Error(`this is left:\n${this.traces().join("\n")}`);
    });
  }

  log(): string {
    return readText(join(this.#root, "log"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await cleanUpNode(await nodeConfigOf(this.options), createLogger({ name: "clean-up", level: "error", fd: 2 }));
    const left = () => [...this.namespaces(), ...this.processes(), ...listCgroups(`/skerry-${this.options.instance}`)];
    await waitUntil("nothing is left after the clean-up", () => left().length === 0, 30_000).catch(() => {
      throw new Error(`after the clean-up this is left:\n${left().join("\n")}`);
    });
    await unmountBelow(this.#root);
    rmSync(this.#root, { recursive: true });
  }
}

/** Makes mounts below the path visible in other mount namespaces. */
async function shareMounts(dir: string): Promise<void> {
  await runCommand("mount", ["--bind", dir, dir]);
  await runCommand("mount", ["--make-shared", dir]);
}

async function mountDisk(file: string, { sizeMb, target }: { sizeMb: number; target: string }): Promise<void> {
  writeFileSync(file, "");
  truncateSync(file, sizeMb * 2 ** 20);
  await runCommand("mkfs.ext4", ["-q", "-m", "0", file]);
  await runCommand("mount", ["-o", "loop", file, target]);
}

/** Undefined if the folder does not exist. */
function entriesOf(dir: string): number | undefined {
  try {
    return readdirSync(dir).length;
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
