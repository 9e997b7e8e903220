import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import { freePorts } from "./free-ports.ts";
import { createRunFolder } from "./run-folder.ts";

const ROOT = "/usr/lib/postgresql";

export interface TestPostgres extends AsyncDisposable {
  /** URL of an empty database. */
  createDatabase(name: string): Promise<string>;
  /** Kills the server without notice to its clients. Its data stays. */
  crash(): Promise<void>;
  /** Restarts the server after a crash, at the same address. */
  restart(): Promise<void>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/**
 * Starts Debian's PostgreSQL for one test, with its own folder and port. For root, the server runs as the user `postgres`, because it refuses
 * to run as root. Throws when the package `postgresql` is not installed.
 */
export async function startPostgres(): Promise<TestPostgres> {
  const bin = await findBinaries();
  const isRoot = process.getuid?.() === 0;
  const folder = isRoot ? await createRunFolder("p") : await mkdtemp(join(tmpdir(), "skerry-pg-"));
  const asServer = createRunner({ isRoot, folder });
  const [port = 0] = await freePorts(1);
  const data = join(folder, "data");
  const options = `-p ${port} -c unix_socket_directories= -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=100`;
  const start = () => asServer(join(bin, "pg_ctl"), ["-D", data, "-w", "-t", "120", "-l", join(data, "log"), "-o", options, "start"]);
  try {
    await mkdir(data, { mode: 0o700 });
    if (isRoot) await runCommand("chown", ["postgres:postgres", data]);
    await asServer(join(bin, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]);
    await start();
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  let isStopped = false;
  let isDown = false;
  const crash = async () => {
    isDown = true;
    await asServer(join(bin, "pg_ctl"), ["-D", data, "-w", "-m", "immediate", "stop"]);
  };
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    if (!isDown) await crash();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    async createDatabase(name) {
      await asServer(join(bin, "createdb"), ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres", name]);
      return `postgres://postgres@127.0.0.1:${port}/${name}`;
    },
    crash,
    async restart() {
      await start();
      isDown = false;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function findBinaries(): Promise<string> {
  const versions = await readdir(ROOT).catch(() => []);
  const newest = versions.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(b) - Number(a))[0];
  if (newest === undefined) throw new Error("PostgreSQL is not installed: apt-get install postgresql");
  return join(ROOT, newest, "bin");
}

function createRunner({
  isRoot,
  folder,
}: {
  isRoot: boolean;
  folder: string;
}): (command: string, args: readonly string[]) => Promise<unknown> {
  const options = { timeoutMs: 150_000, cwd: "/", env: { PATH: process.env.PATH ?? "", LANG: "C.UTF-8", SKERRY_DATA: folder } };
  return (command, args) =>
    isRoot
      ? runCommand("setpriv", ["--reuid=postgres", "--regid=postgres", "--init-groups", command, ...args], options)
      : runCommand(command, args, options);
}
