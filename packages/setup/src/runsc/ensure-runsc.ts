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
  /** Another data folder of this machine, which may have it already. */
  readonly otherBinDir: string | undefined;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The pinned runsc in the data folder's bin/, from the first place that has it. */
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
        // The Go toolchain and caches of a build: hundreds of megabytes that nobody needs again.
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
  throw new OperatorError("gVisor (runsc) can't be had on this machine", {
    exit: "unfit",
    mend: [
      ...failures.map((failure) => `- ${failure instanceof Error ? failure.message.slice(0, 400) : String(failure)}`),
      "Without gVisor a guest talks to the host's own kernel: one kernel bug away from the host. There is no checkpoint, pause with memory or fork.",
      `Give this machine a way to the gVisor release server or to a Go module proxy (GOPROXY), or put the pinned binary into ${folder.binDir}.`,
      "Or run on runc, knowing that: ./skerry up --runtime runc",
    ],
    cause: new AggregateError(failures),
  });
}
