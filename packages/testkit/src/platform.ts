// Starts a complete platform for a test, as an operator runs it: real `skerry serve` processes with their own data folder, ports and names.
// Disposing it stops and cleans up, and fails when anything of the platform is left on the host.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand, spawnCommand } from "@skerry/base";
import { clientVariables, type DataFolder, ensureSecrets, localTlsFiles, type PlatformSettings, type Secrets } from "@skerry/setup/folder";
import { unmountBelow } from "@skerry/test-runner";
import { bundleProgram } from "./bundle-program.ts";
import { freePorts } from "./free-ports.ts";
import { untilNothingIsLeft } from "./leftovers.ts";
import { createTestDataFolder } from "./test-cache.ts";
import { waitUntil } from "./wait-until.ts";

const MAIN = join(import.meta.dirname, "../../../services/skerry/main.ts");
const ARM_CRASH_POINTS = join(import.meta.dirname, "arm-crash-points.ts");
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Compile cache for Skerry processes. Without it a start takes twice the CPU time. */
const compileCache = () => (process.env.NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } : undefined);
const bundles = new Map<boolean, Promise<string>>();

/** The program in one file: a run starts hundreds of processes, and the modules of each take a second of CPU time. */
function bundled({ armable }: { readonly armable: boolean }): Promise<string> {
  const bundle = bundles.get(armable) ?? bundleProgram(MAIN, armable ? [ARM_CRASH_POINTS] : []);
  bundles.set(armable, bundle);
  return bundle;
}

const START_LIMIT_MS = 120_000;
const STOP_LIMIT_MS = 60_000;

export interface StartPlatformOptions {
  readonly runtime?: "gvisor" | "runc";
  /** Further SKERRY_ settings for all processes. */
  readonly env?: Readonly<Record<string, string>>;
  /** The roles of each process, such as `["node", "api", "edge"]`. Default: one process with all roles. */
  readonly roles?: readonly string[];
  /** True: each process serves its metrics. */
  readonly metrics?: boolean;
  /** Puts the data folder on its own disk of this size. */
  readonly diskMb?: number;
  /** True: `arm` can make the process end at a crash point. */
  readonly armable?: boolean;
  /** Further templates, in the format of the data folder's `templates/`. Their layers must be in the test cache. */
  readonly templates?: readonly { readonly alias: string }[];
}

/** Plain data about a running platform. */
export interface RunningPlatform {
  readonly dataDir: string;
  readonly logFile: string;
  readonly apiUrl: string;
  readonly edgeUrl: string;
  readonly domain: string;
  readonly ports: { readonly api: number; readonly edge: number; readonly node: number; readonly control: number };
  readonly secrets: Secrets;
  /** The namespace of the team whose API key is in `secrets`. */
  readonly teamSlug: string;
  /** The variables of `./skerry env --all`, for E2B clients. */
  readonly env: Readonly<Record<string, string>>;
}

export interface Platform extends RunningPlatform, AsyncDisposable {
  /** Ports of the metrics, one for each process in the order of `roles`. Empty without `metrics`. */
  readonly metricsPorts: readonly number[];
  /** Pids of the running processes, in the order of `roles`. */
  pids(): number[];
  /** The logs of all processes so far. */
  logs(): string;
  /** Kills all processes, or those of one role, with SIGKILL. */
  kill9(role?: string): Promise<void>;
  /**
   * Makes the process kill itself with SIGKILL the next time that it reaches this point of `CRASH_POINTS`. Resolves when the point is
   * armed; `ended` resolves with the signal or the exit code. Only for a platform of one process, with `armable`.
   */
  arm(point: string): Promise<{ readonly ended: Promise<string | number | null> }>;
  /** Stops all processes with SIGTERM. Sandboxes keep running. */
  stop(): Promise<void>;
  /** Starts the processes that do not run, or those of one role, and waits until they answer. */
  start(role?: string): Promise<void>;
  /** Stops and starts all processes, with changed SKERRY_ settings from then on. */
  restart(settings?: Readonly<Record<string, string>>): Promise<void>;
  /** Stops, cleans up, and throws when anything of the platform is left on the host. */
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startPlatform(options: StartPlatformOptions = {}): Promise<Platform> {
  const folder = await createTestDataFolder(`t-${randomBytes(6).toString("hex")}`, options);
  for (const template of options.templates ?? []) {
    writeFileSync(join(folder.root, "templates", `${template.alias}.json`), JSON.stringify(template));
  }
  const platform = await createPlatform(folder, options);
  try {
    await platform.start();
  } catch (error) {
    await platform[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
  return platform;
}

async function createPlatform(folder: DataFolder, options: StartPlatformOptions): Promise<Platform> {
  const [api = 0, edge = 0, node = 0, control = 0] = await freePorts(4);
  const ports = { api, edge, node, control };
  const { secrets } = await ensureSecrets(folder);
  const runtime = options.runtime ?? "gvisor";
  const settings: PlatformSettings = { runtime, listen: "127.0.0.1", apiPort: api, edgePort: edge, domain: `localhost:${edge}` };
  const roles = options.roles ?? ["api,edge,node"];
  const metricsPorts = options.metrics ? await freePorts(roles.length) : [];
  const processes = roles.map((processRoles, at) => {
    const extra = { SKERRY_METRICS_PORT: String(metricsPorts[at] ?? 0), ...options.env };
    const env = serveVariables({ folder, settings, ports, roles: processRoles, extra });
    return new ServeProcess(processRoles, { env, folder, ports, armable: options.armable ?? false });
  });
  const each = (work: (process: ServeProcess) => Promise<void>) => Promise.all(processes.map(work));
  const platform: Platform = {
    dataDir: folder.root,
    logFile: folder.logFile,
    apiUrl: `http://127.0.0.1:${api}`,
    edgeUrl: `http://127.0.0.1:${edge}`,
    domain: settings.domain,
    ports,
    metricsPorts,
    secrets,
    teamSlug: "default",
    env: clientVariables({ secrets, settings, tlsFiles: localTlsFiles(folder), all: true }),
    pids: () => processes.flatMap((process) => process.pid ?? []),
    logs: () => readFileSync(folder.logFile, "utf8"),
    kill9: async (role) => {
      await each((process) => (role === undefined || process.has(role) ? process.end("SIGKILL") : Promise.resolve()));
    },
    arm: (point) => {
      const [process, ...others] = processes;
      if (!process || others.length > 0) throw new Error("only a platform of one process can be armed");
      return process.arm(point);
    },
    stop: async () => {
      await each((process) => process.end("SIGTERM"));
    },
    // One after the other, because an API process that starts before its nodes does not know them yet.
    start: async (role) => {
      for (const process of processes) if (role === undefined || process.has(role)) await process.start();
    },
    restart: async (changed = {}) => {
      await platform.stop();
      for (const process of processes) process.set(changed);
      await platform.start();
    },
    [Symbol.asyncDispose]: async () => {
      await platform.stop();
      await cleanUp(folder);
    },
  };
  return platform;
}

async function cleanUp(folder: DataFolder): Promise<void> {
  const env = { PATH: SYSTEM_PATH, HOME: "/root", LANG: "C.UTF-8", ...compileCache() };
  await runCommand(process.execPath, [await bundled({ armable: false }), "down", "--data", folder.root], { env, timeoutMs: 240_000 });
  const left = await untilNothingIsLeft(folder.root);
  if (left.length > 0) throw new Error(`the platform of ${folder.root} left this on the host:\n  ${left.join("\n  ")}`);
  await unmountBelow(folder.root);
  rmSync(folder.root, { recursive: true, force: true });
}

function serveVariables(options: {
  folder: DataFolder;
  settings: PlatformSettings;
  ports: Platform["ports"];
  roles: string;
  extra: Readonly<Record<string, string>>;
}): Record<string, string> {
  const { folder, settings, ports, roles, extra } = options;
  const split = roles.split(",").length < 3;
  return {
    PATH: SYSTEM_PATH,
    HOME: "/root",
    LANG: "C.UTF-8",
    ...compileCache(),
    SKERRY_DATA: folder.root,
    SKERRY_RUNTIME: settings.runtime,
    // Tests count resources on the host and share two CPUs, so the platform prepares nothing that a test does not ask for.
    SKERRY_POOL_SIZE: "0",
    SKERRY_READY_SLOTS: "2",
    SKERRY_ROLES: roles,
    SKERRY_API_PORT: String(ports.api),
    SKERRY_EDGE_PORT: String(ports.edge),
    SKERRY_NODE_PORT: String(ports.node),
    SKERRY_CONTROL_PORT: String(ports.control),
    SKERRY_DOMAIN: settings.domain,
    ...(split && { SKERRY_NODES: `http://127.0.0.1:${ports.node}`, SKERRY_CONTROL_URL: `http://127.0.0.1:${ports.control}` }),
    ...extra,
  };
}

interface ServeProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly folder: DataFolder;
  readonly ports: Platform["ports"];
  readonly armable: boolean;
}

/** One `skerry serve`. */
class ServeProcess {
  readonly #roles: readonly string[];
  #env: Readonly<Record<string, string>>;
  readonly #folder: DataFolder;
  readonly #ports: Platform["ports"];
  readonly #armable: boolean;
  #child: ReturnType<typeof spawnCommand> | undefined;

  constructor(roles: string, options: ServeProcessOptions) {
    this.#roles = roles.split(",");
    this.#env = options.env;
    this.#folder = options.folder;
    this.#ports = options.ports;
    this.#armable = options.armable;
  }

  get pid(): number | undefined {
    return this.#running ? this.#child?.pid : undefined;
  }

  has(role: string): boolean {
    return this.#roles.includes(role);
  }

  get #running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Changes variables for the next start. */
  set(changed: Readonly<Record<string, string>>): void {
    this.#env = { ...this.#env, ...changed };
  }

  async start(): Promise<void> {
    const program = await bundled({ armable: this.#armable });
    if (this.#running) return;
    const log = openSync(this.#folder.logFile, "a", 0o640);
    const stdin = this.#armable ? "pipe" : "ignore";
    this.#child = spawnCommand(process.execPath, [program, "serve"], { cwd: "/", env: this.#env, stdin, stdout: log, stderr: log });
    closeSync(log);
    await this.#untilReady();
  }

  async #untilReady(): Promise<void> {
    const port = this.has("api") ? this.#ports.api : this.has("edge") ? this.#ports.edge : this.#ports.node;
    const ready = () => (this.has("api") ? answersHealth(port) : acceptsConnections(port));
    const deadline = performance.now() + START_LIMIT_MS;
    while (!(await ready())) {
      if (!this.#running) throw new Error(`skerry serve (${this.#roles}) ended while it started:\n${this.#lastLog()}`);
      if (performance.now() > deadline) throw new Error(`skerry serve (${this.#roles}) does not answer:\n${this.#lastLog()}`);
      await sleep(25);
    }
  }

  #lastLog(): string {
    return readFileSync(this.#folder.logFile, "utf8").slice(-4_000);
  }

  async arm(point: string): Promise<{ ended: Promise<string | number | null> }> {
    const child = this.#child;
    if (!child?.stdin) throw new Error("this platform was not started with `armable`");
    const { size } = statSync(this.#folder.logFile);
    const ended = once(child, "exit").then(([code, signal]) => signal ?? code);
    child.stdin.write(`${point}\n`);
    const isArmed = () => readFileSync(this.#folder.logFile).subarray(size).toString().includes(`armed: ${point}\n`);
    await Promise.race([waitUntil(`${point} is armed`, isArmed), ended]);
    return { ended };
  }

  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (!child || !this.#running) return;
    const ended = once(child, "exit");
    child.kill(signal);
    const late = sleep(STOP_LIMIT_MS, "late" as const, { ref: false });
    if ((await Promise.race([ended, late])) === "late") {
      child.kill("SIGKILL");
      await ended;
      throw new Error(`skerry serve (${this.#roles}) did not end within ${STOP_LIMIT_MS / 1000} s of SIGTERM:\n${this.#lastLog()}`);
    }
  }
}

async function answersHealth(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

function acceptsConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
