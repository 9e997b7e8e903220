// Runs one command in the sandbox of a build, through the agent's process service. The guest may have taken over the agent, so its messages
// are bounded in size and in time, and nothing that it sends is kept.

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type BuildCommand, type CommandEnd, commandRefused, sandboxLost } from "@skerry/builder";
import { AGENT_PORT } from "@skerry/wire";
import { Process, type ProcessEvent } from "@skerry/wire/process";
import { durationText } from "./duration-text.ts";
import { Lines } from "./lines.ts";
import { ownConnection } from "./own-connection.ts";

/** The agent sends at most 32 KiB of output in one message. */
const MAX_MESSAGE_BYTES = 256 * 1024;
const MAX_MESSAGE_LENGTH = 1_000;
/** Bound on the output of one command: who writes more has no use for a log. */
const MAX_OUTPUT_BYTES = 64 * 2 ** 20;
/** How much later than the agent the node ends a command. */
const GRACE_MS = 5_000;

/** Errors before the start of a command with which an agent refuses it. All others mean that there is no agent. */
const REFUSALS: readonly Code[] = [Code.Unauthenticated, Code.InvalidArgument, Code.ResourceExhausted, Code.FailedPrecondition];

export interface CommandTarget {
  /** The address of the sandbox. */
  readonly address: string;
  /** The sandbox's access token. */
  readonly token: string;
  /** Aborted when the sandbox has ended. */
  readonly lost: AbortSignal;
}

/**
 * A `timeoutMs` of 0 is none: the process outlives its stream then. Calls `onStart` when the process runs. Throws the reason of `command.signal` when that is aborted, and
 * PlatformError("build_command_refused" | "build_sandbox_lost").
 */
export async function runCommandIn(
  { address, token, lost }: CommandTarget,
  command: BuildCommand,
  onStart?: () => void,
): Promise<CommandEnd> {
  const { argv, user, workdir, env, timeoutMs, signal, onLine } = command;
  const [cmd = "", ...args] = argv;
  signal.throwIfAborted();
  const agent = ownConnection();
  const limit = timeoutMs === 0 ? undefined : Math.max(1, Math.ceil(timeoutMs));
  const deadline = limit === undefined ? lost : AbortSignal.timeout(limit + GRACE_MS);
  const followed = new Followed(onLine, onStart);
  try {
    const transport = createConnectTransport({
      baseUrl: `http://${address}:${AGENT_PORT}`,
      httpVersion: "1.1",
      nodeOptions: { agent },
      readMaxBytes: MAX_MESSAGE_BYTES,
      acceptCompression: [],
    });
    const headers = {
      authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}`,
      ...(token === "" ? {} : { "x-access-token": token }),
    };
    const events = createClient(Process, transport).start(
      { process: { cmd, args, envs: { ...env }, ...(workdir === "" ? {} : { cwd: workdir }) }, stdin: false },
      { headers, ...(limit === undefined ? {} : { timeoutMs: limit }), signal: AbortSignal.any([signal, lost, deadline]) },
    );
    for await (const { event } of events) {
      const end = followed.take(event?.event);
      if (end) return end;
    }
    throw sandboxLost("the sandbox of this step was lost: its agent did not tell how the command ended");
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ConnectError)) throw error;
    if (!lost.aborted && (deadline.aborted || error.code === Code.DeadlineExceeded))
      return { exitCode: -1, status: `timed out after ${durationText(timeoutMs)}` };
    throw failureOf(error, followed.hasStarted);
  } finally {
    agent.destroy();
  }
}

type Event = ProcessEvent["event"];

/** What was heard of a command. */
class Followed {
  hasStarted = false;
  #bytes = 0;
  readonly #lines: Record<"stdout" | "stderr", Lines>;

  readonly #onStart: (() => void) | undefined;

  constructor(onLine: BuildCommand["onLine"], onStart: (() => void) | undefined) {
    this.#onStart = onStart;
    this.#lines = {
      stdout: new Lines((line) => onLine?.(line, "stdout")),
      stderr: new Lines((line) => onLine?.(line, "stderr")),
    };
  }

  take(event: Event | undefined): CommandEnd | undefined {
    switch (event?.case) {
      case "start":
        this.hasStarted = true;
        this.#onStart?.();
        return undefined;
      case "data":
        return this.#output(event.value.output);
      case "end": {
        for (const lines of Object.values(this.#lines)) lines.end();
        const { exitCode, status } = event.value;
        return { exitCode, status: status.slice(0, MAX_MESSAGE_LENGTH) };
      }
      default:
        return undefined;
    }
  }

  #output(output: Extract<Event, { case: "data" }>["value"]["output"]): CommandEnd | undefined {
    if (output.case !== "stdout" && output.case !== "stderr") return undefined;
    this.#bytes += output.value.length;
    if (this.#bytes > MAX_OUTPUT_BYTES) return { exitCode: -1, status: `its output exceeds ${MAX_OUTPUT_BYTES / 2 ** 20} MiB` };
    this.#lines[output.case].add(output.value);
    return undefined;
  }
}

/** A guest that takes over its agent can make up both kinds. Neither harms anybody but its own build. */
function failureOf(error: ConnectError, hasStarted: boolean): Error {
  const message = error.rawMessage.slice(0, MAX_MESSAGE_LENGTH);
  if (!hasStarted && REFUSALS.includes(error.code)) return commandRefused(`${nameOf(error.code)}: ${message}`, error);
  return sandboxLost("the sandbox of this step was lost: its agent does not answer", error);
}

/** The name of a code as clients of the agent know it: `invalid_argument`. */
function nameOf(code: Code): string {
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
