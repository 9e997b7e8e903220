import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Report } from "@skerry/setup";
import { toolEnvironment } from "@skerry/setup";
import { OperatorError } from "@skerry/setup/folder";

const PACKAGE = "docker-registry";

/**
 * Unpacks Debian's registry for tests below `dir`. The package is not installed, because it would start a server that listens on every
 * address of the host.
 */
export async function ensureTestRegistry(dir: string, options: { report: Report; signal: AbortSignal }): Promise<{ binary: string }> {
  const { report, signal } = options;
  const tree = join(dir, PACKAGE);
  const binary = join(tree, "usr/bin", PACKAGE);
  if (await exists(binary)) return { binary };
  const staging = join(dir, `${PACKAGE}.staging`);
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
    report("downloading the test registry");
    await aptGet(["download", PACKAGE]).catch(async () => {
      signal.throwIfAborted();
      await aptGet(["update"]);
      await aptGet(["download", PACKAGE]);
    });
    const [archive = ""] = await readdir(staging);
    await runCommand("dpkg-deb", ["-x", join(staging, archive), join(staging, "tree")], { signal });
    await rm(tree, { recursive: true, force: true });
    await rename(join(staging, "tree"), tree);
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError(`could not download the Debian package ${PACKAGE}, which the tests need`, {
      hints: [...String(cause).split("\n").slice(-4), `Check that apt can reach its archives: apt-get download ${PACKAGE}`],
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
