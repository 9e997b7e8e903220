import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand, spawnCommand } from "@skerry/base";
import { freePorts } from "../free-ports.ts";
import { prepareTestRegistry } from "../test-cache.ts";
import { type TestImage, writeOciLayout } from "./oci-layout.ts";

export interface TestRegistry extends AsyncDisposable {
  /** Address of the registry: "127.0.0.1:<port>". */
  readonly host: string;
  /** Folder of the stored images, for tests that damage them. */
  readonly storageDir: string;
  /** Pushes images as `<host>/<name>`, and returns that reference. Several images become one index. */
  push(name: string, ...images: readonly TestImage[]): Promise<string>;
  stop(): Promise<void>;
}

/** The only user of a registry with authentication. */
export const REGISTRY_USER = { username: "tester", password: "an image, please" };
/** bcrypt hash of the password. The registry accepts no other kind. */
const PASSWORD_HASH = "$2b$05$abcdefghijklmnopqrstuucj7geRmnWyIKMR6roFTNOmfTNCqiYCG";

export interface RegistryOptions {
  readonly asksForUser?: boolean;
  /** Files in PEM format. Default: plain HTTP. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Default: 127.0.0.1. Only this address and loopback ones work without a name service. */
  readonly address?: string;
}

/** Starts a real registry for one test, on loopback. */
export async function startRegistry(options: RegistryOptions = {}): Promise<TestRegistry> {
  const binary = await prepareTestRegistry();
  const dir = await mkdtemp("/tmp/skerry-registry-");
  const [port = 0] = await freePorts(1);
  const host = `${options.address ?? "127.0.0.1"}:${port}`;
  const storageDir = join(dir, "storage");
  await mkdir(storageDir);
  await writeFile(join(dir, "htpasswd"), `${REGISTRY_USER.username}:${PASSWORD_HASH}\n`);
  await writeFile(join(dir, "config.json"), JSON.stringify(configuration({ dir, storageDir, host, ...options })));
  // The configuration is YAML, of which JSON is a subset.
  const server = spawnCommand(binary, ["serve", join(dir, "config.json")], { cwd: dir });
  const ended = new Promise<void>((resolve) => server.once("close", () => resolve()).once("error", () => resolve()));
  const stop = async () => {
    server.kill("SIGKILL");
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await untilAnswers(host, () => server.exitCode === null && server.pid !== undefined);
  } catch (error) {
    await stop();
    throw error;
  }
  const authFile = join(dir, "auth.json");
  const auth = Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64");
  await writeFile(authFile, JSON.stringify({ auths: { [host]: { auth } } }));
  return {
    host,
    storageDir,
    async push(name, ...images) {
      const layout = await mkdtemp(join(dir, "layout-"));
      await writeOciLayout(layout, images);
      const flags = ["--all", "--quiet", "--dest-tls-verify=false", "--dest-authfile", authFile];
      await runCommand("skopeo", ["copy", ...flags, `oci:${layout}`, `docker://${host}/${name}`], { timeoutMs: 120_000 });
      await rm(layout, { recursive: true });
      return `${host}/${name}`;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function configuration(options: RegistryOptions & { dir: string; storageDir: string; host: string }): object {
  return {
    version: "0.1",
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: options.storageDir } },
    http: {
      addr: options.host,
      secret: "of this test alone",
      ...(options.tls && { tls: options.tls }),
    },
    ...(options.asksForUser && { auth: { htpasswd: { realm: "test", path: join(options.dir, "htpasswd") } } }),
  };
}

async function untilAnswers(host: string, isRunning: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      const answer = await fetch(`http://${host}/v2/`, { signal: AbortSignal.timeout(2_000) });
      await answer.body?.cancel();
      return;
    } catch (cause) {
      if (!isRunning() || performance.now() > deadline) {
        throw new Error("the test registry does not start", { cause });
      }
      await sleep(25);
    }
  }
}
