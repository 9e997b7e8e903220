import { access, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Report } from "@skerry/setup";
import { toolEnvironment } from "@skerry/setup";
import { OperatorError } from "@skerry/setup/folder";

const VERSION = "2.19.0";
const require = createRequire(import.meta.url);

/**
 * Installs the pinned command line of the official SDK below `dir`. Returns its program, for Node.js. It is no dependency of the repository,
 * because it brings more than a hundred packages that only one test needs.
 */
export async function ensureE2bCli(dir: string, options: { report: Report; signal: AbortSignal }): Promise<{ program: string }> {
  const { report, signal } = options;
  const folder = join(dir, `e2b-cli-${VERSION}`);
  const program = join(folder, "node_modules/@e2b/cli/dist/index.js");
  const marker = join(folder, "complete");
  if (await exists(marker)) return { program };
  await rm(folder, { recursive: true, force: true });
  report(`installing the E2B command line ${VERSION}`);
  const npm = join(dirname(require.resolve("npm/package.json")), "bin/npm-cli.js");
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", folder];
  try {
    await runCommand(process.execPath, [npm, "install", ...flags, `@e2b/cli@${VERSION}`], {
      env: toolEnvironment(),
      timeoutMs: 300_000,
      signal,
    });
    await runCommand(process.execPath, [program, "--version"], { timeoutMs: 60_000, signal });
    await writeFile(marker, "");
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError("could not install the official command line", {
      hints: ["Check that npm can reach its registry: npm view @e2b/cli"],
      cause,
    });
  }
  return { program };
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
