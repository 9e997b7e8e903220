// Requests with an `Idempotency-Key`. The first request with a key is carried out even when its caller goes away; repetitions get
// its answer. Only successes are stored: a failed request has left nothing behind, so a repetition may try again.
// Failure policy: when a process dies in the middle, `recover` finds out what it made. If it made nothing, the request is carried out anew.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock, Logger } from "@skerry/base";
import type { IdempotencyRepository, KeyRecord, NewKeyRecord } from "@skerry/store";
import type { ApiTiming } from "../config.ts";
import { publicError, validationError } from "../errors.ts";
import type { SandboxMoves } from "../sandboxes/lifecycle/moves.ts";
import type { LeftOvers } from "../sandboxes/reconcile/left-overs.ts";

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One request that may have been sent before. */
export interface RepeatableRequest {
  readonly teamId: string;
  /** The header `Idempotency-Key`, as it was received. */
  readonly key: string | readonly string[] | undefined;
  readonly signal: AbortSignal;
}

export interface Once {
  /** The request with its defaults filled in. A key stands for one request only. */
  readonly asked: unknown;
  /** Ids for what the request makes, chosen before it begins. */
  readonly subjects: () => readonly string[];
  readonly work: (subjects: readonly string[], signal: AbortSignal) => Promise<Answer>;
  /** The answer to a request whose process died; undefined when the request made nothing and never will. */
  readonly recover: (subjects: readonly string[]) => Promise<Answer | undefined>;
}

export interface IdempotentRequestsDeps {
  readonly keys: IdempotencyRepository;
  readonly moves: Pick<SandboxMoves, "owner">;
  readonly leftOvers: LeftOvers;
  readonly accessTokenOf: (sandboxId: string) => string;
  readonly trafficTokenOf: (sandboxId: string) => string;
  readonly timing: ApiTiming;
  readonly clock: Clock;
  readonly logger: Logger;
}

const KEY = /^[a-z0-9-]{1,255}$/;
/** How long a repetition waits for the first request before it gets `in_progress`. */
const WAIT_MS = 20_000;
const POLL_MS = 100;

type FirstTry = { readonly kind: "answered"; readonly answer: Answer } | { readonly kind: "taken"; readonly held: KeyRecord };

export class IdempotentRequests {
  readonly #deps: IdempotentRequestsDeps;
  /** Requests that this process works on: each key with the subjects of that attempt, from before the database knows it until after. */
  readonly #active = new Set<string>();
  constructor(deps: IdempotentRequestsDeps) {
    this.#deps = deps;
  }

  /** Carries out `once`, or answers as it was answered before. Throws `key_mismatch` and `in_progress`. */
  async answer({ teamId, key, signal }: RepeatableRequest, once: Once): Promise<Answer> {
    if (key === undefined) return await once.work(once.subjects(), signal);
    if (typeof key !== "string" || !KEY.test(key)) {
      throw validationError("the header Idempotency-Key must be 1 to 255 characters of a-z, 0-9 and '-'");
    }
    const fingerprint = createHash("sha256").update(canonical(once.asked)).digest("hex");
    const deadline = performance.now() + WAIT_MS;
    while (!signal.aborted && performance.now() < deadline) {
      const createdAt = this.#deps.clock.now();
      const record = { teamId, key, fingerprint, owner: this.#deps.moves.owner, createdAt, subjects: once.subjects() };
      const first = await this.#tryFirst(record, once);
      if (first.kind === "answered") return first.answer;
      const { held } = first;
      if (held.fingerprint !== fingerprint) throw mismatch();
      if (held.answer) return this.#replay(held.answer);
      if (this.#isLeft(held)) {
        const answer = await this.#takeUp({ held, record, once });
        if (answer) return answer;
      } else await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
    throw publicError("in_progress", "A request with this Idempotency-Key is still being carried out", {
      detailCode: "idempotency_in_progress",
    });
  }

  async #whileActive<T>(record: NewKeyRecord, work: () => Promise<T>): Promise<T> {
    const name = nameOf(record);
    this.#active.add(name);
    try {
      return await work();
    } finally {
      this.#active.delete(name);
    }
  }

  async #tryFirst(record: NewKeyRecord, once: Once): Promise<FirstTry> {
    return await this.#whileActive(record, async () => {
      const held = await this.#deps.keys.reserve(record, record.createdAt - this.#deps.timing.keepKeysMs);
      return held ? { kind: "taken", held } : { kind: "answered", answer: await this.#carryOut(record, once) };
    });
  }

  async #carryOut(record: NewKeyRecord, once: Once): Promise<Answer> {
    // Not the caller's signal: a caller who went away can come back for the answer.
    const answer = await once.work(record.subjects, new AbortController().signal).catch(async (error: unknown) => {
      await this.#deps.keys.release(record).catch((failure: unknown) => {
        this.#deps.logger.warn({ err: failure }, "an idempotency key could not be released");
      });
      throw error;
    });
    await this.#store(record, answer);
    return answer;
  }

  /** When this fails, the key stays reserved: a repetition finds out what was made, and nothing is made twice. */
  async #store(record: NewKeyRecord, { status, body }: Answer): Promise<void> {
    try {
      await this.#deps.keys.finish(record, { status, body: withoutTokens(body) });
    } catch (error) {
      const facts = { err: error, status, team_id: record.teamId };
      this.#deps.logger.warn(facts, "the answer to a request with an idempotency key could not be stored");
    }
  }

  /**
   * Whether nobody works on the request any more: an earlier run of this process did, this process failed to store the answer, or the
   * other process died or hangs.
   */
  #isLeft(held: KeyRecord): boolean {
    const { moves, timing, leftOvers } = this.#deps;
    if (held.owner === moves.owner) return !this.#active.has(nameOf(held));
    const longestMs = (Math.max(timing.snapshotTimeoutMs, timing.pauseTimeoutMs) + timing.createTimeoutMs) * 2;
    return leftOvers.isLeft({ key: nameOf(held), owner: held.owner, longestMs });
  }

  /** Undefined when another process took the request up first. */
  async #takeUp({ held, record, once }: { held: KeyRecord; record: NewKeyRecord; once: Once }): Promise<Answer | undefined> {
    const { keys, logger } = this.#deps;
    const answer = await once.recover(held.subjects);
    const taken: NewKeyRecord = { ...record, subjects: answer ? held.subjects : record.subjects };
    return await this.#whileActive(taken, async () => {
      if (!(await keys.takeOver(held, taken))) return undefined;
      logger.warn({ status: answer?.status, team_id: held.teamId }, "took up a request that another process left unfinished");
      if (!answer) return await this.#carryOut(taken, once);
      await this.#store(taken, answer);
      return answer;
    });
  }

  #replay(stored: { readonly status: number; readonly body: string }): Answer {
    const body: unknown = JSON.parse(stored.body, (_name, value) => {
      if (value?.envdAccessToken !== true || typeof value.sandboxID !== "string") return value;
      const traffic = value.trafficAccessToken === true ? { trafficAccessToken: this.#deps.trafficTokenOf(value.sandboxID) } : {};
      return { ...value, envdAccessToken: this.#deps.accessTokenOf(value.sandboxID), ...traffic };
    });
    return { status: stored.status, body };
  }
}

function nameOf({ teamId, key, subjects }: Pick<KeyRecord, "teamId" | "key" | "subjects">): string {
  return `${teamId}/${key}/${subjects.join()}`;
}

function mismatch(): Error {
  const message = "This Idempotency-Key was used for another request before";
  return publicError("key_mismatch", message, { detailCode: "idempotency_request_mismatch" });
}

const TOKEN_FIELDS: ReadonlySet<string> = new Set(["envdAccessToken", "trafficAccessToken"]);

/** Tokens are never stored: a replay derives them again. */
function withoutTokens(body: unknown): string {
  return JSON.stringify(body, (name, value) => (TOKEN_FIELDS.has(name) ? true : value));
}

/** The same text for equal values, whatever the order of their fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
