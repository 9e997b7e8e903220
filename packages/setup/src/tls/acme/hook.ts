import { type Logger, runCommand } from "@skerry/base";
import type { ChallengeRecord } from "./state.ts";

/** Time for one call. Changes of DNS take minutes with some providers. */
const LIMIT_MS = 300_000;
const LOGGED_CHARACTERS = 2_000;

export interface HookCall extends ChallengeRecord {
  readonly hook: string;
  readonly action: "present" | "cleanup";
  readonly logger: Logger;
  readonly signal?: AbortSignal;
}

/** Runs the operator's program. It inherits no variable of this process. */
export async function callHook({ hook, action, name, value, logger, signal }: HookCall): Promise<void> {
  const { stdout, stderr } = await runCommand(hook, [action, name, value], {
    env: {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/root",
      LANG: "C.UTF-8",
      ACME_ACTION: action,
      ACME_NAME: name,
      ACME_VALUE: value,
    },
    timeoutMs: LIMIT_MS,
    ...(signal && { signal }),
  });
  const output = `${stdout}${stderr}`.trim().slice(-LOGGED_CHARACTERS);
  logger.info({ action, name, output }, "the ACME hook has run");
}
