// The start command of a template. It runs in a sandbox that nobody has yet, and goes on when nobody listens to it any more. The ready command
// is tried until it succeeds.

import { setTimeout as sleep } from "node:timers/promises";
import { asError, type Logger, PlatformError } from "@skerry/base";
import { BuildFailure, type BuildLog, loginShell } from "@skerry/builder";
import { LOG_OUTPUT_VARIABLE } from "@skerry/wire";
import { durationText } from "../builds/duration-text.ts";
import { type CommandTarget, runCommandIn } from "../builds/run-command.ts";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { StartOfTemplate } from "../records/sandbox-record.ts";

/** Pause between two attempts of the ready command. */
const RETRY_MS = 2_000;
/** What the builder takes for the ready command of a template that has only a start command. Nobody waits for it at a create. */
const READY_BY_DEFAULT = "sleep 20";
const STEP = "finalize";
/** How long a create waits for the ready command: less than clients wait for the create. */
const BOOT_READY_MS = 30_000;

export interface BringUp {
  readonly start: StartOfTemplate;
  /** How long the ready command may take altogether. */
  readonly readyMs: number;
  readonly signal: AbortSignal;
  readonly log?: BuildLog;
  /** Called when the start command runs. */
  readonly onLaunch?: () => void;
}

function hasReadyCommand({ ready }: StartOfTemplate): boolean {
  return ready !== "" && ready !== READY_BY_DEFAULT;
}

/**
 * Runs the start command, and resolves when the ready command has succeeded; the process goes on. Throws BuildFailure when the start command
 * fails before that, or the ready command does not succeed in time, and PlatformError("build_sandbox_lost").
 */
export async function bringUp(target: CommandTarget, options: BringUp): Promise<void> {
  const { start, signal } = options;
  const over = new AbortController();
  const ends = AbortSignal.any([signal, over.signal]);
  const launched = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<never>();
  const onLaunch = () => {
    options.onLaunch?.();
    launched.resolve();
  };
  const running = start.command === "" ? Promise.resolve() : runStart(target, { ...options, signal: ends }, onLaunch);
  if (start.command === "") onLaunch();
  const ended = running.then(
    () => launched.resolve(),
    (error: unknown) => failed.reject(error),
  );
  try {
    await Promise.race([launched.promise.then(() => untilReady(target, { ...options, signal: ends })), failed.promise]);
  } finally {
    // The agent lets a process run whose stream is closed.
    over.abort();
    failed.promise.catch(() => {});
    await ended;
  }
}

/**
 * Runs the start command in a container that was booted, if it is owed: no image of the template was there to restore, or the sandbox lost its
 * memory. Waits for a ready command that the template names itself, but not for long: whoever creates or resumes a sandbox waits as well.
 * Further callers wait for the same attempt. Never throws, because the sandbox works without it.
 */
export async function bringUpBooted({ containers, logger }: StartsCommands, containerId: string): Promise<void> {
  const live = containers.get(containerId);
  if (live?.record.startOwed) live.startCommand ??= bringUpLive(live, { containers, logger });
  await live?.startCommand;
}

interface StartsCommands {
  readonly containers: Containers;
  readonly logger: Logger;
}

async function bringUpLive(live: LiveContainer, { containers, logger }: StartsCommands): Promise<void> {
  const { containerId, sandboxId, buildId, slot, identity, start } = live.record;
  if (!start) return;
  const target = { address: slot.addresses.guest, token: identity.accessToken, lost: live.ended.signal };
  const ready = hasReadyCommand(start) ? start.ready : "";
  // A crash of the node between the start of the process and this record runs the command twice. The other order would lose it.
  const onLaunch = () => {
    const { startOwed: _paid, ...record } = live.record;
    containers.set(record);
  };
  try {
    await bringUp(target, { start: { ...start, ready }, readyMs: BOOT_READY_MS, signal: live.ended.signal, onLaunch });
  } catch (error) {
    const facts = { sandbox_id: sandboxId, container_id: containerId, build_id: buildId, err: asError(error) };
    logger.warn(facts, "the start command of a template did not make a booted sandbox ready");
  }
}

/** Resolves when the start command has ended without an error, or is listened to no longer. */
async function runStart(target: CommandTarget, { start, signal, log }: BringUp, onStart: () => void): Promise<void> {
  const onLine = lineLogger(log, "info", "start");
  try {
    const logged = { ...start, env: { [LOG_OUTPUT_VARIABLE]: "1", ...start.env } };
    const { exitCode, status } = await runCommandIn(target, { ...commandOf(logged, start.command), timeoutMs: 0, signal, onLine }, onStart);
    if (exitCode !== 0) throw new BuildFailure(`start command failed: error running start command: ${status}`, { step: STEP });
  } catch (error) {
    if (signal.aborted) return;
    throw refusalOf(error, "start command failed: error running start command");
  }
}

async function untilReady(target: CommandTarget, { start, readyMs, signal, log }: BringUp): Promise<void> {
  if (start.ready === "") return;
  const deadline = performance.now() + readyMs;
  const onLine = lineLogger(log, "debug", "ready");
  for (;;) {
    const timeoutMs = deadline - performance.now();
    if (timeoutMs <= 0)
      throw new BuildFailure(`ready command failed: ready command timed out after ${durationText(readyMs)}`, { step: STEP });
    try {
      const { exitCode } = await runCommandIn(target, { ...commandOf(start, start.ready), timeoutMs, signal, onLine });
      if (exitCode === 0) return;
    } catch (error) {
      throw refusalOf(error, "ready command failed");
    }
    await sleep(Math.max(0, Math.min(RETRY_MS, deadline - performance.now())), undefined, { signal });
  }
}

function commandOf({ user, workdir, env }: StartOfTemplate, command: string) {
  return { ...loginShell(command, env), user, workdir };
}

function lineLogger(log: BuildLog | undefined, level: "info" | "debug", name: string) {
  return (line: string, stream: string) => {
    const text = line.trim();
    if (text !== "") log?.({ level, step: STEP, message: `[${name}] [${stream}]: ${text}` });
  };
}

function refusalOf(error: unknown, what: string): unknown {
  if (!(error instanceof PlatformError) || error.code !== "build_command_refused") return error;
  return new BuildFailure(`${what}: ${error.message}`, { step: STEP, cause: error });
}
