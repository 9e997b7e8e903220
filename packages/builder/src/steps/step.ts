import type { BuildSandbox, LogLevel } from "../build-host.ts";
import type { StepContext } from "../context.ts";
import type { KeyPart } from "../keys.ts";

/** A step of a template, as the caller wrote it. */
export interface Step {
  /** Upper case. */
  readonly type: string;
  readonly args: readonly string[];
  /** Of COPY and ADD: the digest of the uploaded archive in the blob store, or "". */
  readonly archive: string;
  /** What the client calls the files, or "". */
  readonly filesHash: string;
}

export interface StepTools {
  readonly signal: AbortSignal;
  /** The sandbox of the step, on the files so far. It is started when it is first asked for. */
  sandbox(): Promise<BuildSandbox>;
  /** The bytes of an uploaded archive. Throws PlatformError("blob_missing"). */
  archive(digest: string): Promise<AsyncIterable<Uint8Array>>;
  log(level: LogLevel, message: string): void;
}

export interface StepEffect {
  readonly context: StepContext;
  /** Whether the step may have changed files. */
  readonly wrote: boolean;
}

/** A step whose arguments are valid, in the context that it begins with. */
export interface StepPlan {
  /** What the result depends on, besides the files so far. It is part of the key. */
  readonly inputs: KeyPart;
  /** Throws StepFailure. */
  run(tools: StepTools): Promise<StepEffect>;
  /** The context after the step, given the one that the same step had left in an earlier build, where the rest may have been different. */
  resume(left: StepContext): StepContext;
}

/** Throws StepFailure when the arguments are wrong. */
export type PlanStep = (step: Step, context: StepContext) => StepPlan;

/** Why a step failed, in words for the caller. */
export class StepFailure extends Error {
  override readonly name = "StepFailure";
}

/** Variables in an order of their own: the order in which they were set does not matter. */
export function variablesKey(env: Readonly<Record<string, string>>): KeyPart {
  return Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
}
