import { asError, runCommand } from "@skerry/base";
import type { DataFolder, PlatformSettings } from "@skerry/setup/folder";

/** `bad`: the platform won't work. `warn`: it works, with less than it could. */
export type Outcome = "good" | "warn" | "bad";

export interface Finding {
  readonly outcome: Outcome;
  readonly found: string;
  /** What to do about it; for everything that is not good. */
  readonly mend?: string;
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

export const good = (found: string): Finding => ({ outcome: "good", found });
export const warn = (found: string, mend: string): Finding => ({ outcome: "warn", found, mend });
export const bad = (found: string, mend: string): Finding => ({ outcome: "bad", found, mend });

/** A check that breaks is a failed check, and not the end of the others. */
export async function runCheck(check: Check, context: CheckContext): Promise<Finding> {
  try {
    return await check.run(context);
  } catch (error) {
    return bad(`could not be checked: ${firstLine(error)}`, "Run ./skerry doctor as root; if it stays, please report it.");
  }
}

/** Tries something for real. Returns undefined when it works, else what the system said. */
export async function failureOf(command: string, args: readonly string[]): Promise<string | undefined> {
  try {
    await runCommand(command, args, { timeoutMs: 20_000 });
    return undefined;
  } catch (error) {
    return firstLine(error);
  }
}

export function firstLine(error: unknown): string {
  return asError(error).message.split("\n")[0]?.slice(0, 200) ?? "";
}
