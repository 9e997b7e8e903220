import type { Logger } from "@skerry/base";
import type { Target } from "@skerry/wire";
import { LRUCache } from "lru-cache";

/** Minimum interval between two lines for one sandbox and one reason. */
const INTERVAL_MS = 10_000;

/** Maximum number of sandboxes and reasons that are counted. */
const MAX_COUNTED = 10_000;

export type RefusalReason =
  | "token missing"
  | "token invalid"
  | "link invalid"
  | "link method"
  | "link limited"
  | "agent by path"
  | "wake denied"
  | "too many connections"
  | "too many requests";

/** What a refused request asked for. */
export interface Refused extends Target {
  /** The id in the link's token, which need not exist. */
  readonly linkId?: string;
}

interface Counted {
  loggedAt: number;
  unlogged: number;
}

/** Leaves a trace of refused requests in the log, without their tokens. A flood of them causes a line every ten seconds, with their number. */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #counted = new LRUCache<string, Counted>({ max: MAX_COUNTED });

  constructor(logger: Logger, now: () => number = () => performance.now()) {
    this.#logger = logger;
    this.#now = now;
  }

  note({ sandboxId, port, linkId }: Refused, reason: RefusalReason, clientAddress: string): void {
    const key = `${sandboxId} ${reason}`;
    const counted = this.#counted.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, unlogged: 0 };
    this.#counted.set(key, counted);
    counted.unlogged++;
    if (this.#now() - counted.loggedAt < INTERVAL_MS) return;
    const facts = {
      sandbox_id: sandboxId,
      port,
      reason,
      client_address: clientAddress,
      requests: counted.unlogged,
      ...(linkId && { link_id: linkId }),
    };
    this.#logger.warn(facts, "traffic to a sandbox was refused");
    counted.loggedAt = this.#now();
    counted.unlogged = 0;
  }
}
