// Pauses sandboxes whose time is over and that are to be paused then, so many at a time.
// Failure policy: one that could not be paused runs on with its time over, and is tried again, waiting longer each time.

import type { SandboxEntry } from "@skerry/store";
import type { SandboxDeps } from "./deps.ts";
import { PLATFORM } from "./moves.ts";
import { finishPause, newImage } from "./pause-sandbox.ts";

const AT_ONCE = 4;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

export class AutoPauses {
  readonly #deps: SandboxDeps;
  readonly #delays = new Map<string, number>();
  readonly #queue: { readonly sandbox: SandboxEntry; readonly done: () => void }[] = [];
  readonly #workers = new Set<Promise<void>>();
  #stopped = false;
  constructor(deps: SandboxDeps) {
    this.#deps = deps;
  }

  /** They must be in `pausing`, and this process's. */
  add(sandboxes: readonly SandboxEntry[]): void {
    // In the queue they are being worked on too: however long that takes, nobody else settles them.
    for (const sandbox of sandboxes) this.#queue.push({ sandbox, done: this.#deps.moves.begin(sandbox.id) });
    while (this.#workers.size < Math.min(AT_ONCE, this.#workers.size + this.#queue.length)) {
      const worker: Promise<void> = this.#work().finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
    }
  }

  /** Finishes the pauses under way. What is left stays in `pausing` for the next process, which finds that it runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#workers);
  }

  async #work(): Promise<void> {
    for (let next = this.#queue.shift(); next && !this.#stopped; next = this.#queue.shift()) {
      const { id } = next.sandbox;
      try {
        await this.#pause(id);
        this.#delays.delete(id);
      } catch (error) {
        await this.#putOff(id, error);
      } finally {
        next.done();
      }
    }
  }

  async #pause(id: string): Promise<void> {
    const { store } = this.#deps;
    const sandbox = await store.sandboxes.find(id);
    if (sandbox?.state !== "pausing" || sandbox.imageId !== null) return;
    const image = newImage(this.#deps, sandbox, { kind: "pause", memory: sandbox.autoPauseMemory });
    if (!(await store.sandboxes.beginImage(id, image))) return;
    const options = { memory: sandbox.autoPauseMemory, requireHealthyGuest: false, actor: PLATFORM, reason: "timeout" } as const;
    await finishPause(this.#deps, { ...sandbox, imageId: image.id }, options);
  }

  async #putOff(id: string, error: unknown): Promise<void> {
    const delayMs = Math.min((this.#delays.get(id) ?? FIRST_RETRY_MS / 2) * 2, LONGEST_RETRY_MS);
    this.#delays.set(id, delayMs);
    this.#deps.logger.warn(
      { err: error, sandbox_id: id, retry_ms: delayMs },
      "a sandbox whose time is over could not be paused and runs on",
    );
    await this.#deps.store.sandboxes.putOffExpiry(id, this.#deps.clock.now() + delayMs).catch((failure: unknown) => {
      this.#deps.logger.warn({ err: failure, sandbox_id: id }, "putting off a pause failed");
    });
  }
}
