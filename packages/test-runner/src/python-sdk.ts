import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Report } from "@skerry/setup";
import { ensurePythonEnvironment } from "./python-environment.ts";

/** The newest SDK, and the newest one that Ubuntu 22.04's Python 3.10 can install. */
const NEWEST = "2.63.0";
const FOR_PYTHON_3_10 = "2.55.1";

/** Installs the pinned official SDK from PyPI in a virtual environment below `dir`. Returns its Python. */
export async function ensurePythonSdk(
  dir: string,
  options: { report: Report; signal: AbortSignal },
): Promise<{ python: string; version: string }> {
  const { stdout } = await runCommand("python3", ["-c", "import sys; print(sys.version_info >= (3, 11))"], { signal: options.signal });
  const version = stdout.trim() === "True" ? NEWEST : FOR_PYTHON_3_10;
  const python = await ensurePythonEnvironment({
    ...options,
    environment: join(dir, `python-e2b-${version}`),
    packages: [`e2b==${version}`],
    check: "import e2b",
    what: `e2b ${version}, the official Python SDK,`,
  });
  return { python, version };
}
