// Ends sandboxes whose time is over. Each look takes everything that is due in one statement, so that a sandbox is
// gone for callers at once, however long its node needs; several control processes share the work without knowing.

import type { Clock, Logger } from "@skerry/base";
import type { SandboxEntry, SandboxRepository } from "@skerry/store";
import type { AutoPauses } from "./auto-pauses.ts";
import type { SandboxKills } from "./kills.ts";
import { next, type SandboxEvent } from "./lifecycle.ts";
import { PLATFORM, type SandboxMoves } from "./moves.ts";

const EXPIRED_AT_ONCE = 500;
/** A kill that another process works on needs about this long; later it counts as left over. */
const LEFT_OVER_MS = 2_000;
const RETRY_EVERY_MS = 500;

export interface ExpiryDeps {
  readonly sandboxes: SandboxRepository;
  readonly moves: SandboxMoves;
  readonly kills: SandboxKills;
  readonly pauses: AutoPauses;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly scanMs: number;
}

export class Expiry {
  readonly #deps: ExpiryDeps;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #retrying: Promise<void> = Promise.resolve();
  #retryDue = 0;
  #stopped = true;
  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#stopped = false;
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await Promise.all([this.#looking, this.#retrying]);
  }

  /** One look. Kills and pauses go on in the background. */
  async look(): Promise<void> {
    const { kills, pauses } = this.#deps;
    await this.#take("expire", (expired) => {
      for (const sandbox of expired) kills.finishInBackground(sandbox);
    });
    await this.#take("pause", (expired) => pauses.add(expired));
  }

  async #take(event: SandboxEvent, begin: (expired: readonly SandboxEntry[]) => void): Promise<void> {
    const { sandboxes, moves, clock } = this.#deps;
    const move = next("running", event);
    if (move.kind !== "move" || (move.to !== "killing" && move.to !== "pausing")) return;
    for (;;) {
      const change = { to: move.to, event, actor: PLATFORM, owner: moves.owner, now: clock.now(), limit: EXPIRED_AT_ONCE };
      const expired = await sandboxes.expire(change);
      begin(expired);
      moves.announce(expired);
      if (expired.length < EXPIRED_AT_ONCE) return;
    }
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#lookAndRetry().finally(() => this.#schedule());
    }, this.#deps.scanMs);
  }

  async #lookAndRetry(): Promise<void> {
    try {
      await this.look();
      const now = this.#deps.clock.now();
      if (now < this.#retryDue) return;
      this.#retryDue = now + RETRY_EVERY_MS;
      // Not awaited: a node that hangs must not hold up the next look.
      this.#retrying = this.#deps.kills.retryUnsettled(LEFT_OVER_MS).catch((error: unknown) => this.#complain(error));
    } catch (error) {
      this.#complain(error);
    }
  }

  #complain(error: unknown): void {
    this.#deps.logger.error({ err: error }, "looking for expired sandboxes failed");
  }
}
