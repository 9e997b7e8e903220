import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Report } from "@skerry/setup";
import { ensurePythonEnvironment } from "./python-environment.ts";

const TEMPLATE = join(import.meta.dirname, "../../../templates/code-interpreter-v1");
const REQUIREMENTS = ["requirements-server.txt", "requirements-kernels.txt"].map((name) => join(TEMPLATE, name));
/** Enough of the template's libraries for every kind of result, and the official clients of the templates that ship. */
const MORE = ["matplotlib", "pandas", "pillow", "e2b-code-interpreter>=2.8.1,<2.12", "e2b-desktop>=2.7,<2.8"];

/** Installs what the server of the template `code-interpreter-v1` and its kernels need below `dir`. Returns their Python. */
export async function ensureInterpreterPython(dir: string, options: { report: Report; signal: AbortSignal }): Promise<string> {
  const hash = createHash("sha256").update(MORE.join());
  for (const file of REQUIREMENTS) hash.update(await readFile(file));
  return await ensurePythonEnvironment({
    ...options,
    environment: join(dir, `python-interpreter-${hash.digest("hex").slice(0, 12)}`),
    packages: [...REQUIREMENTS.flatMap((file) => ["-r", file]), ...MORE],
    check: "import ipykernel, tornado, e2b_code_interpreter, e2b_desktop",
    what: "Jupyter kernels",
  });
}
