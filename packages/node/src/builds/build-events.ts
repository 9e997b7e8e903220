// What a build says, for any number of watchers, until the control plane has stored it. A guest decides how much its commands print, so what
// is kept is bounded: of each step, and of the whole build.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BuildLog } from "@skerry/builder";
import type { BuildEventSchema } from "@skerry/wire/node";

/** Bounds on the text of one step and of one build. Longer logs are cut, because nobody reads them, and the database stores each line. */
const MAX_STEP_LENGTH = 4 * 2 ** 20;
const MAX_BUILD_LENGTH = 16 * 2 ** 20;
/** A line counts for at least this much: an event takes memory, however short its text is. */
const LINE_LENGTH = 200;

type Line = Parameters<BuildLog>[0];
export type BuildEventInit = Required<Pick<MessageInitShape<typeof BuildEventSchema>, "number" | "event">>;
/** The last event of a build. */
export type BuildOutcome = Extract<BuildEventInit["event"], { case?: "succeeded" | "failed" }>;

export class BuildEvents {
  readonly #events: BuildEventInit[] = [];
  readonly #lengths = new Map<string, number>();
  #length = 0;
  #isOver = false;
  #changed = Promise.withResolvers<void>();

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Lines beyond the bounds are left out; the log says so once for each step. Warnings and errors come from the builder, and always stay. */
  line(line: Line): void {
    if (this.#isOver || !this.#hasRoom(line)) return;
    this.#add({ case: "line", value: { ...line, atMs: BigInt(Date.now()) } });
  }

  end(outcome: BuildOutcome): void {
    if (this.#isOver) return;
    this.#add(outcome);
    this.close();
  }

  /** Ends the streams of all watchers. Without an outcome before it, the build was cut off. */
  close(): void {
    this.#isOver = true;
    this.#changed.resolve();
  }

  /** The events from one on, as they come, until the build is over. */
  async *from(first: number, signal: AbortSignal): AsyncGenerator<BuildEventInit> {
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (let next = first; !signal.aborted; ) {
      const event = this.#events[next];
      if (event) {
        next += 1;
        yield event;
      } else if (this.#isOver) return;
      else await Promise.race([this.#changed.promise, aborted]);
    }
  }

  #hasRoom({ level, step, message }: Line): boolean {
    if (level === "warn" || level === "error") return true;
    const cost = Math.max(message.length, LINE_LENGTH);
    const used = this.#lengths.get(step) ?? 0;
    if (used + cost <= MAX_STEP_LENGTH && this.#length + cost <= MAX_BUILD_LENGTH) {
      this.#lengths.set(step, used + cost);
      this.#length += cost;
      return true;
    }
    if (used !== Number.POSITIVE_INFINITY) {
      this.#lengths.set(step, Number.POSITIVE_INFINITY);
      this.line({ level: "warn", step, message: "the log of this step is too long: the rest of it is left out" });
    }
    return false;
  }

  #add(event: BuildEventInit["event"]): void {
    this.#events.push({ number: BigInt(this.#events.length), event });
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}
