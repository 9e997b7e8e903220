// Reads the events of a build from its node, in batches: each batch is stored with one statement before more is read, so a build that floods
// its log is slowed down instead of filling the memory of this process.

import type { BuildLogLine } from "@skerry/store";
import { LOG_LEVELS } from "@skerry/store";
import type { BuildFailure, BuildResult } from "@skerry/wire/node";
import type { NodeHandle } from "../nodes/directory.ts";

export interface BuildBatch {
  readonly lines: readonly BuildLogLine[];
  /** The number of the next event. */
  readonly next: number;
  readonly end: BuildEnd | undefined;
}

export type BuildEnd =
  | { readonly kind: "succeeded"; readonly result: BuildResult }
  | { readonly kind: "failed"; readonly failure: BuildFailure };

const BATCH_LINES = 500;
/** How long a line waits for others. Clients ask five times in a second. */
const BATCH_MS = 100;

/** Yields batches until the last event, or until the stream ends. Throws when the connection fails. */
export async function* watchBuild(
  node: NodeHandle,
  options: { readonly buildId: string; readonly from: number; readonly signal: AbortSignal },
): AsyncGenerator<BuildBatch> {
  const { buildId, from, signal } = options;
  const events = node.client.watchBuild({ buildId, from: BigInt(from) }, { signal, timeoutMs: 0 })[Symbol.asyncIterator]();
  let pending = events.next();
  let lines: BuildLogLine[] = [];
  let next = from;
  let sendAt = 0;
  try {
    for (;;) {
      const got = lines.length === 0 ? await pending : await within(pending, sendAt - performance.now());
      if (got === "late" || got.done === true || lines.length >= BATCH_LINES) {
        if (lines.length > 0) yield { lines, next, end: undefined };
        lines = [];
        if (got === "late") continue;
        if (got.done === true) return;
      }
      const { number, event } = got.value;
      pending = events.next();
      next = Number(number) + 1;
      if (event.case === "line") {
        if (lines.length === 0) sendAt = performance.now() + BATCH_MS;
        const { atMs, level, step, message } = event.value;
        lines.push({ at: Number(atMs), level: LOG_LEVELS.find((each) => each === level) ?? "info", step, message });
      } else if (event.case === "succeeded") {
        yield { lines, next, end: { kind: "succeeded", result: event.value } };
        return;
      } else if (event.case === "failed") {
        yield { lines, next, end: { kind: "failed", failure: event.value } };
        return;
      }
    }
  } finally {
    // Whoever stops reading has no use for what comes next, nor for its failure.
    pending.catch(() => {});
    void events.return?.().catch(() => {});
  }
}

async function within<T>(pending: Promise<T>, ms: number): Promise<T | "late"> {
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), Math.max(0, ms));
  try {
    return await Promise.race([pending, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
