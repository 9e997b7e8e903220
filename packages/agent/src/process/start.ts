import type { HandlerContext } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { LOG_OUTPUT_VARIABLE } from "@skerry/wire";
import type { StartRequest } from "@skerry/wire/process";
import type { User } from "../accounts/accounts.ts";
import { loadLibc } from "../native/libc.ts";
import { PathError } from "../paths.ts";
import { requestUser } from "../request-user.ts";
import { assertTimeLeft, deadlineError } from "../server-stream.ts";
import type { ProcessContext } from "./context.ts";
import { follow } from "./follow.ts";
import { ProcessOutput } from "./output-log.ts";
import { GuestProcess } from "./running/guest-process.ts";
import { launch } from "./running/launch.ts";
import type { Subscriber } from "./running/subscriber.ts";

export async function* start(process: ProcessContext, request: StartRequest, context: HandlerContext): ReturnType<typeof follow> {
  assertTimeLeft(context);
  const timeoutMs = context.timeoutMs();
  await loadLibc();
  const started = startProcess(process, request, requestUser(context));
  const subscriber = started.subscribe();
  if (timeoutMs !== undefined) limitLifetime(started, subscriber, timeoutMs);
  yield* follow(started, subscriber, context);
}

function startProcess(process: ProcessContext, request: StartRequest, user: User): GuestProcess {
  const config = request.process;
  const cwd = expandCwd(process, config?.cwd ?? "", user);
  const identity = {
    cmd: config?.cmd ?? "",
    args: config?.args ?? [],
    envs: config?.envs ?? {},
    cwd: config?.cwd,
    tag: request.tag,
  };
  const env: Readonly<Record<string, string>> = {
    PATH: process.state.path,
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    ...process.state.site?.variables({ ...process.state.environment(), ...identity.envs }),
    ...process.state.environment(),
    ...identity.envs,
    PWD: cwd,
  };
  const launched = launch({
    user,
    cmd: identity.cmd,
    args: identity.args,
    env,
    cwd,
    pty: request.pty === undefined ? undefined : { cols: request.pty.size?.cols ?? 0, rows: request.pty.size?.rows ?? 0 },
    stdin: request.stdin ?? true,
    processLimit: process.state.processLimit(),
    fallback: process.tini,
  });
  const log = env[LOG_OUTPUT_VARIABLE] === "1" ? new ProcessOutput(process.state.outputLog(), launched.pid) : undefined;
  const started = new GuestProcess(launched, { identity, log, onEnd: (ended) => process.table.retire(ended) });
  process.table.add(started);
  return started;
}

function expandCwd(process: ProcessContext, cwd: string, user: User): string {
  try {
    return process.state.expand(cwd, user);
  } catch (error) {
    if (error instanceof PathError) throw new ConnectError(`error resolving cwd: ${error.message}`, Code.InvalidArgument);
    throw error;
  }
}

// The deadline of a Start call applies to the process, even after the client has disconnected. The stream fails before the kill,
// because clients take an `end` event before the error for an ordinary exit.
function limitLifetime(started: GuestProcess, subscriber: Subscriber, timeoutMs: number): void {
  const timer = setTimeout(() => {
    subscriber.fail(deadlineError());
    if (started.end === undefined) started.signal("SIGKILL");
  }, timeoutMs);
  started.ended.finally(() => clearTimeout(timer));
}
