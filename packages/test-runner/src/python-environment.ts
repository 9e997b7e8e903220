import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Report } from "@skerry/setup";
import { toolEnvironment } from "@skerry/setup";
import { OperatorError } from "@skerry/setup/folder";

export interface PythonEnvironmentOptions {
  readonly environment: string;
  /** Arguments of `pip install`. */
  readonly packages: readonly string[];
  /** Statement that works in a complete environment. */
  readonly check: string;
  readonly what: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Installs packages from PyPI in a virtual environment, unless that has been done. Returns its Python. */
export async function ensurePythonEnvironment(options: PythonEnvironmentOptions): Promise<string> {
  const { environment, packages, check, what, report, signal } = options;
  const python = join(environment, "bin/python");
  const marker = join(environment, "complete");
  if (await exists(marker)) return python;
  await rm(environment, { recursive: true, force: true });
  report(`installing ${what} from PyPI`);
  try {
    await runCommand("python3", ["-m", "venv", environment], { env: toolEnvironment(), timeoutMs: 120_000, signal });
    await runCommand(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages], {
      env: toolEnvironment(),
      timeoutMs: 600_000,
      signal,
    });
    await runCommand(python, ["-c", `${check}; import pathlib; pathlib.Path(${JSON.stringify(marker)}).touch()`], {
      timeoutMs: 60_000,
      signal,
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError(`could not install ${what}`, {
      hints: [...lastLines(String(cause)), "Check that pip can reach its index: pip download e2b"],
      cause,
    });
  }
  return python;
}

/** Long lines are cut: pip lists all versions in one line. */
const lastLines = (text: string) =>
  text
    .split("\n")
    .slice(-4)
    .map((line) => line.slice(0, 300));

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
