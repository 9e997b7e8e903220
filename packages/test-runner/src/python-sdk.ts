import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Report } from "@skerry/setup";
import { toolEnvironment } from "@skerry/setup";
import { OperatorError } from "@skerry/setup/folder";

/** The newest SDK, and the newest one that Ubuntu 22.04's Python 3.10 can install. */
const NEWEST = "2.63.0";
const FOR_PYTHON_3_10 = "2.55.1";

/** Installs the pinned official SDK from PyPI in a virtual environment below `dir`. Returns its Python. */
export async function ensurePythonSdk(
  dir: string,
  options: { report: Report; signal: AbortSignal },
): Promise<{ python: string; version: string }> {
  const { report, signal } = options;
  const { stdout } = await runCommand("python3", ["-c", "import sys; print(sys.version_info >= (3, 11))"], { signal });
  const version = stdout.trim() === "True" ? NEWEST : FOR_PYTHON_3_10;
  const environment = join(dir, `python-e2b-${version}`);
  const python = join(environment, "bin/python");
  const marker = join(environment, "complete");
  if (await exists(marker)) return { python, version };
  await rm(environment, { recursive: true, force: true });
  report(`installing e2b ${version} from PyPI`);
  try {
    await runCommand("python3", ["-m", "venv", environment], { env: toolEnvironment(), timeoutMs: 120_000, signal });
    await runCommand(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", `e2b==${version}`], {
      env: toolEnvironment(),
      timeoutMs: 300_000,
      signal,
    });
    await runCommand(python, ["-c", `import e2b, pathlib; pathlib.Path(${JSON.stringify(marker)}).touch()`], { timeoutMs: 60_000, signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError("could not install the official Python SDK", {
      hints: [...lastLines(String(cause)), "Check that pip can reach its index: pip download e2b"],
      cause,
    });
  }
  return { python, version };
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
