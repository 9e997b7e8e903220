import { copyFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { runCommand } from "@skerry/base";
import type { DataFolder } from "../folder/data-folder.ts";
import { OperatorError } from "../operator-error.ts";
import type { Report } from "../steps.ts";
import { GO_VERSION } from "./pinned.ts";
import { buildFromModules, fetchRelease, findRunsc, type RunscBinary } from "./sources.ts";

export interface EnsureRunscOptions {
  readonly recordedSha512: string | undefined;
  /** Another data folder on this host, which may have the binary. */
  readonly otherBinDir: string | undefined;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Puts the pinned runsc into the data folder's bin/, from the first source that has it. */
export async function ensureRunsc(folder: DataFolder, options: EnsureRunscOptions): Promise<RunscBinary> {
  const { report, signal } = options;
  const present = await findRunsc(folder.binDir, options.recordedSha512);
  if (present) return present;
  const elsewhere = options.otherBinDir === undefined ? undefined : await findRunsc(options.otherBinDir, undefined);
  if (elsewhere) {
    const path = join(folder.binDir, basename(elsewhere.path));
    await copyFile(elsewhere.path, `${path}.new`);
    await rename(`${path}.new`, path);
    return { ...elsewhere, path };
  }
  const staging = join(folder.binDir, "runsc.staging");
  const failures: unknown[] = [];
  try {
    for (const source of [fetchRelease, buildFromModules]) {
      try {
        const binary = await source({ staging, workDir: folder.workDir, report, signal });
        await runCommand(staging, ["--version"]);
        const path = join(folder.binDir, `runsc-${binary.sha512.slice(0, 12)}`);
        await rename(staging, path);
        // The Go toolchain of a build takes hundreds of megabytes and is not needed again.
        await rm(join(folder.workDir, `go${GO_VERSION}`), { recursive: true, force: true });
        return { ...binary, path };
      } catch (error) {
        signal.throwIfAborted();
        failures.push(error);
      }
    }
  } finally {
    await rm(staging, { force: true });
  }
  throw new OperatorError("could not install gVisor (runsc)", {
    exit: "unfit",
    hints: [
      ...failures.map((failure) => `- ${failure instanceof Error ? failure.message.slice(0, 400) : String(failure)}`),
      `Allow this host to reach the gVisor release server or a Go module proxy (GOPROXY), or copy the pinned binary into ${folder.binDir}.`,
      "Or use runc: ./skerry up --runtime runc. Guests then use the host's kernel directly, and a pause keeps no memory.",
    ],
    cause: new AggregateError(failures),
  });
}
