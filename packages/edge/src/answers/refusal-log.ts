import type { Logger } from "@skerry/base";
import type { Target } from "@skerry/wire";
import { LRUCache } from "lru-cache";

/** Minimum interval between two lines for one sandbox and one reason. */
const INTERVAL_MS = 10_000;

/** Maximum number of lines in this interval altogether: a flood may name ever other sandboxes, which need not exist. */
const MAX_LINES = 100;

/** Maximum number of sandboxes and reasons that are counted. */
const MAX_COUNTED = 10_000;

export type RefusalReason =
  | "token missing"
  | "token invalid"
  | "link invalid"
  | "link method"
  | "link limited"
  | "agent by path"
  /** A request names its sandbox or port in a way that is not valid, or in two ways. */
  | "target invalid"
  | "path reserved"
  | "signature invalid"
  | "signature limited"
  | "wake denied"
  | "too many connections"
  | "too many requests"
  | "too many connections of the team"
  | "too many requests of the team";

/** What a refused request asked for. Without a sandbox: it named none, or nobody has looked it up. */
export interface Refused extends Partial<Target> {
  /** The id in the link's token, which need not exist. */
  readonly linkId?: string;
}

interface Counted {
  loggedAt: number;
  unlogged: number;
}

/**
 * Leaves a trace of refused requests in the log, without their tokens, signatures and paths. A flood of them causes a line every ten seconds
 * for each sandbox and reason, with their number, and a hundred lines at most.
 */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #now: () => number;
  #window = { startedAt: Number.NEGATIVE_INFINITY, lines: 0 };
  readonly #counted = new LRUCache<string, Counted>({ max: MAX_COUNTED });

  constructor(logger: Logger, now: () => number = () => performance.now()) {
    this.#logger = logger;
    this.#now = now;
  }

  note({ sandboxId, port, linkId }: Refused, reason: RefusalReason, clientAddress: string): void {
    const key = `${sandboxId ?? ""} ${reason}`;
    const counted = this.#counted.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, unlogged: 0 };
    this.#counted.set(key, counted);
    counted.unlogged++;
    if (this.#now() - counted.loggedAt < INTERVAL_MS || !this.#hasRoom()) return;
    const facts = {
      ...(sandboxId && { sandbox_id: sandboxId, port }),
      reason,
      client_address: clientAddress,
      requests: counted.unlogged,
      ...(linkId && { link_id: linkId }),
    };
    this.#logger.warn(facts, "traffic to a sandbox was refused");
    counted.loggedAt = this.#now();
    counted.unlogged = 0;
  }

  /** Counts a line, if there may be another one. What is not logged is part of the number in a later line. */
  #hasRoom(): boolean {
    if (this.#now() - this.#window.startedAt >= INTERVAL_MS) this.#window = { startedAt: this.#now(), lines: 0 };
    this.#window.lines++;
    return this.#window.lines <= MAX_LINES;
  }
}
