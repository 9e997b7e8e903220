// Programs of Debian packages that tests use, and that must not be installed.

import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Report } from "@skerry/setup";
import { toolEnvironment } from "@skerry/setup";
import { OperatorError } from "@skerry/setup/folder";

interface Options {
  readonly report: Report;
  readonly signal: AbortSignal;
}

interface Program {
  readonly binary: string;
}

/** The registry for tests that pull OCI images. Installed, it would start a server that listens on every address of the host. */
export function ensureTestRegistry(dir: string, options: Options): Promise<Program> {
  return ensureUnpacked(dir, { name: "docker-registry", program: "docker-registry" }, options);
}

/** The program that tests alert rules. Installed, its package would start a Prometheus server. */
export function ensurePromtool(dir: string, options: Options): Promise<Program> {
  return ensureUnpacked(dir, { name: "prometheus", program: "promtool" }, options);
}

/** Unpacks a Debian package below `dir`, without installing it. */
async function ensureUnpacked(
  dir: string,
  { name, program }: { readonly name: string; readonly program: string },
  { report, signal }: Options,
): Promise<Program> {
  const tree = join(dir, name);
  const binary = join(tree, "usr/bin", program);
  if (await exists(binary)) return { binary };
  const staging = join(dir, `${name}.staging`);
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { recursive: true });
  const aptGet = (args: readonly string[]) =>
    runCommand("apt-get", ["-q", ...args], {
      cwd: staging,
      env: toolEnvironment(),
      timeoutMs: 300_000,
      maxOutputBytes: 16 * 1024 * 1024,
      signal,
    });
  try {
    report(`downloading ${name}`);
    await aptGet(["download", name]).catch(async () => {
      signal.throwIfAborted();
      await aptGet(["update"]);
      await aptGet(["download", name]);
    });
    const [archive = ""] = await readdir(staging);
    await runCommand("dpkg-deb", ["-x", join(staging, archive), join(staging, "tree")], { signal });
    await rm(tree, { recursive: true, force: true });
    await rename(join(staging, "tree"), tree);
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError(`could not download the Debian package ${name}, which the tests need`, {
      hints: [...String(cause).split("\n").slice(-4), `Check that apt can reach its archives: apt-get download ${name}`],
      cause,
    });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return { binary };
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
