import { asError, runCommand } from "@skerry/base";
import type { DataFolder, PlatformSettings } from "@skerry/setup/folder";

/** `failed`: the platform won't work. `warning`: it works with restrictions. */
export type Outcome = "passed" | "warning" | "failed";

export interface Finding {
  readonly outcome: Outcome;
  readonly found: string;
  /** What to do about it. Present unless the check passed. */
  readonly fix?: string;
}

export interface CheckContext {
  readonly folder: DataFolder;
  readonly settings: PlatformSettings;
  readonly repoRoot: string;
}

export interface Check {
  readonly name: string;
  run(context: CheckContext): Promise<Finding>;
}

export const pass = (found: string): Finding => ({ outcome: "passed", found });
export const warn = (found: string, fix: string): Finding => ({ outcome: "warning", found, fix });
export const fail = (found: string, fix: string): Finding => ({ outcome: "failed", found, fix });

/** Runs a check. A check that throws has failed; the others still run. */
export async function runCheck(check: Check, context: CheckContext): Promise<Finding> {
  try {
    return await check.run(context);
  } catch (error) {
    return fail(`could not be checked: ${firstLine(error)}`, "Run ./skerry doctor as root. If this check still fails, please report it.");
  }
}

/** Runs a command. Returns undefined if it succeeds, otherwise the first line of its error. */
export async function failureOf(command: string, args: readonly string[]): Promise<string | undefined> {
  try {
    await runCommand(command, args, { timeoutMs: 20_000 });
    return undefined;
  } catch (error) {
    return firstLine(error);
  }
}

function firstLine(error: unknown): string {
  return asError(error).message.split("\n")[0]?.slice(0, 200) ?? "";
}
