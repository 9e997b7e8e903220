// Commands in the sandbox of a step.

import { PlatformError } from "@skerry/base";
import type { BuildSandbox, CommandEnd } from "../build-host.ts";
import { StepOutput } from "../log/step-output.ts";
import { SYSTEM_PATH } from "./login-shell.ts";
import { StepFailure, type StepTools } from "./step.ts";

export const COMMAND_TIMEOUT_MS = 3_600_000;
/** For the builder's own scripts, which take moments. */
const SCRIPT_TIMEOUT_MS = 300_000;
const MOST_OUTPUT = 1_000_000;

/** How the agent's refusal to start a command reads in a reason: `unauthenticated: invalid username: 'x'`. */
export function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof PlatformError) || error.code !== "build_command_refused") return undefined;
  return error.message.replace(/^\[([a-z_]+)\] /, "$1: ");
}

export interface ScriptOptions {
  readonly args: readonly string[];
  /** Default: root, whose login environment does not matter to a script. */
  readonly user?: string;
  readonly isLogin?: boolean;
}

/** Runs a script of the builder, and returns the beginning of what it printed. Its errors are logged. */
export async function runScript(
  tools: Pick<StepTools, "signal" | "log">,
  sandbox: BuildSandbox,
  script: string,
  { args, user = "root", isLogin = false }: ScriptOptions,
): Promise<CommandEnd & { readonly output: string }> {
  const lines: string[] = [];
  let length = 0;
  const errors = new StepOutput((message) => tools.log("debug", message));
  const end = await sandbox.run({
    argv: ["/bin/bash", ...(isLogin ? ["-l"] : []), "-c", script, "bash", ...args],
    user,
    workdir: "/",
    env: isLogin ? {} : { PATH: SYSTEM_PATH },
    timeoutMs: SCRIPT_TIMEOUT_MS,
    signal: tools.signal,
    onLine: (line, stream) => {
      if (stream === "stderr") errors.add(line, stream);
      // Login profiles of the image print what they like.
      if (stream === "stderr" || length > MOST_OUTPUT) return;
      length += line.length + 1;
      lines.push(line);
    },
  });
  errors.end();
  return { ...end, output: lines.join("\n") };
}

const MARK = "skerry-variables";
/** Each variable that is set, after a mark: login profiles may print something of their own. */
const PRINT_VARIABLES = `printf '%s\\0' ${MARK}; for name; do [ -n "\${!name+set}" ] && printf '%s=%s\\0' "$name" "\${!name}"; done; true`;

/** Variables of a user's login shell; those that are not set are left out. */
export async function loginVariables(tools: StepTools, user: string, names: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const { output, exitCode, status } = await runScript(tools, await tools.sandbox(), PRINT_VARIABLES, { args: names, user, isLogin: true });
  const begin = output.lastIndexOf(`${MARK}\0`);
  if (exitCode !== 0 || begin < 0) throw new StepFailure(status);
  const pairs = output.slice(begin).split("\0").slice(1).filter(Boolean);
  return Object.fromEntries(pairs.map((pair): [string, string] => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}
