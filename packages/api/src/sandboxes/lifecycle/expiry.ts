// Kills or pauses sandboxes whose timeout has passed. Each scan moves all expired sandboxes in one statement, so callers see the end at once,
// however long the node needs. Several API processes share the work without coordination: a sandbox is moved once.

import type { Clock, Logger } from "@skerry/base";
import type { SandboxEntry, SandboxRepository } from "@skerry/store";
import { RepeatedWork } from "../../repeated-work.ts";
import type { AutoPauses } from "./auto-pauses.ts";
import type { SandboxKills } from "./kills.ts";
import { next, type SandboxEvent } from "./lifecycle.ts";
import { PLATFORM, type SandboxMoves } from "./moves.ts";

/** Rows that one statement moves. It bounds the length of the transaction. */
const EXPIRED_AT_ONCE = 500;
/** Age from which a kill counts as abandoned. A kill by another process usually takes less than this. */
const LEFT_OVER_MS = 2_000;
/** Interval between scans for abandoned kills. */
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
  readonly #scans: RepeatedWork;
  #retrying: Promise<void> = Promise.resolve();
  #retryDue = 0;
  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
    this.#scans = new RepeatedWork({
      work: () => this.#lookAndRetry(),
      pauseMs: deps.scanMs,
      onError: (error) => this.#complain(error),
    });
  }

  start(): void {
    this.#scans.start();
  }

  async stop(): Promise<void> {
    await this.#scans.stop();
    await this.#retrying;
  }

  /** One scan. The kills and pauses that it begins continue in the background. */
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

  async #lookAndRetry(): Promise<void> {
    await this.look();
    const now = this.#deps.clock.now();
    if (now < this.#retryDue) return;
    this.#retryDue = now + RETRY_EVERY_MS;
    // Not awaited: a node that does not answer must not delay the next scan.
    this.#retrying = this.#deps.kills.retryUnsettled(LEFT_OVER_MS).catch((error: unknown) => this.#complain(error));
  }

  #complain(error: unknown): void {
    this.#deps.logger.error({ err: error }, "the scan for expired sandboxes failed");
  }
}
