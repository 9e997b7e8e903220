import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { DataFolder } from "../../data-folder.ts";
import { OperatorError } from "../../operator-error.ts";
import type { Report } from "../../terminal/steps.ts";
import { buildFromModules, fetchRelease, findRunsc, type RunscBinary } from "./sources.ts";

/** The pinned runsc in the data folder's bin/, from the first place that has it. */
export async function ensureRunsc(
  folder: DataFolder,
  options: { recordedSha512: string | undefined; report: Report; signal: AbortSignal },
): Promise<RunscBinary> {
  const { report, signal } = options;
  const present = await findRunsc(folder.binDir, options.recordedSha512);
  if (present) return present;
  const staging = join(folder.binDir, "runsc.staging");
  const failures: unknown[] = [];
  try {
    for (const source of [fetchRelease, buildFromModules]) {
      try {
        const binary = await source({ staging, workDir: folder.workDir, report, signal });
        await runCommand(staging, ["--version"]);
        const path = join(folder.binDir, `runsc-${binary.sha512.slice(0, 12)}`);
        await rename(staging, path);
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
