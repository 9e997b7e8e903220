// Requests with an `Idempotency-Key`: the first one is carried out, whether its caller stays or not, and repetitions get
// its answer. Only successes are kept: what failed has left nothing behind, so that a repetition may try again.
// Failure policy: what a process left unfinished is found out from what it made (`recover`), and done anew when it made nothing.

import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { KeyRecord, NewKeyRecord } from "@skerry/store";
import { publicError, validationError } from "../../errors.ts";
import type { Caller } from "../../keys/authenticate.ts";
import { teamOf } from "../input/request-values.ts";
import type { OperationResponse } from "../operation.ts";
import type { ApiServices } from "../services.ts";

export interface Once {
  /** What is asked for, with its defaults filled in. */
  readonly asked: unknown;
  /** Ids for what it is to make. */
  readonly subjects: () => readonly string[];
  readonly work: (subjects: readonly string[], signal: AbortSignal) => Promise<OperationResponse>;
  /** The answer of one whose process is gone; undefined when nothing came of it, or will. */
  readonly recover: (subjects: readonly string[]) => Promise<OperationResponse | undefined>;
}

interface OnceRequest {
  readonly caller: Caller;
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
}

const KEY = /^[a-z0-9-]{1,255}$/;
const WAIT_MS = 20_000;
const POLL_MS = 100;

export async function answerOnce(services: ApiServices, request: OnceRequest, once: Once): Promise<OperationResponse> {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return await once.work(once.subjects(), request.signal);
  if (typeof key !== "string" || !KEY.test(key)) {
    throw validationError("the header Idempotency-Key must be 1 to 255 characters of a-z, 0-9 and '-'");
  }
  const teamId = teamOf(request.caller).id;
  const fingerprint = createHash("sha256").update(canonical(once.asked)).digest("hex");
  const deadline = performance.now() + WAIT_MS;
  while (!request.signal.aborted && performance.now() < deadline) {
    const createdAt = services.clock.now();
    const record = { teamId, key, fingerprint, owner: services.moves.owner, createdAt, subjects: once.subjects() };
    const answer = await tryFirst(services, record, once);
    if (answer.kind === "answered") return answer.response;
    const { held } = answer;
    if (held.fingerprint !== fingerprint) throw mismatch();
    if (held.answer) return replay(services, held.answer);
    if (isLeft(services, held)) {
      const response = await takeUp(services, { held, record, once });
      if (response) return response;
    } else await sleep(POLL_MS, undefined, { signal: request.signal }).catch(() => {});
  }
  throw publicError("in_progress", "A request with this Idempotency-Key is still being carried out", {
    detailCode: "idempotency_in_progress",
  });
}

/** What this process is at work on: keys with the subjects of that try, from before the database knows of it until after. */
const active = new WeakMap<ApiServices["moves"], Set<string>>();

const nameOf = ({ teamId, key, subjects }: Pick<KeyRecord, "teamId" | "key" | "subjects">) => `${teamId}/${key}/${subjects.join()}`;

function isActive(services: ApiServices, record: KeyRecord): boolean {
  return active.get(services.moves)?.has(nameOf(record)) ?? false;
}

async function whileActive<T>(services: ApiServices, record: NewKeyRecord, work: () => Promise<T>): Promise<T> {
  const names = active.get(services.moves) ?? new Set();
  active.set(services.moves, names.add(nameOf(record)));
  try {
    return await work();
  } finally {
    names.delete(nameOf(record));
  }
}

type FirstTry = { readonly kind: "answered"; readonly response: OperationResponse } | { readonly kind: "taken"; readonly held: KeyRecord };

async function tryFirst(services: ApiServices, record: NewKeyRecord, once: Once): Promise<FirstTry> {
  return await whileActive(services, record, async () => {
    const held = await claim(services, record);
    return held ? { kind: "taken", held } : { kind: "answered", response: await carryOut(services, record, once) };
  });
}

async function claim(services: ApiServices, record: NewKeyRecord): Promise<KeyRecord | undefined> {
  return await services.store.idempotency.reserve(record, record.createdAt - services.timing.keepKeysMs);
}

async function carryOut(services: ApiServices, record: NewKeyRecord, once: Once): Promise<OperationResponse> {
  // Not the caller's: one who went away can come back for the answer.
  const response = await once.work(record.subjects, new AbortController().signal).catch(async (error: unknown) => {
    await services.store.idempotency.release(record).catch((failure: unknown) => {
      services.logger.warn({ err: failure }, "an idempotency key could not be released");
    });
    throw error;
  });
  await keepAnswer(services, record, response);
  return response;
}

/** Where that fails, the key stays reserved: a repetition finds out what was made, and nothing is made twice. */
async function keepAnswer(services: ApiServices, record: NewKeyRecord, { status, body }: OperationResponse): Promise<void> {
  try {
    await services.store.idempotency.finish(record, { status, body: withoutTokens(body) });
  } catch (error) {
    services.logger.warn(
      { err: error, status, team_id: record.teamId },
      "the answer to a request with an idempotency key could not be stored",
    );
  }
}

/** Nobody is at work for it any more: an earlier run of this process was, or this one failed to say so, or its process is gone or hangs. */
function isLeft(services: ApiServices, held: KeyRecord): boolean {
  const { moves, timing, leftOvers } = services;
  if (held.owner === moves.owner) return !isActive(services, held);
  const longestMs = (Math.max(timing.snapshotTimeoutMs, timing.pauseTimeoutMs) + timing.createTimeoutMs) * 2;
  return leftOvers.isLeft({ key: nameOf(held), owner: held.owner, longestMs });
}

/** Undefined when somebody else took it up first. */
async function takeUp(
  services: ApiServices,
  work: { readonly held: KeyRecord; readonly record: NewKeyRecord; readonly once: Once },
): Promise<OperationResponse | undefined> {
  const { held, record, once } = work;
  const { idempotency } = services.store;
  const response = await once.recover(held.subjects);
  const taken: NewKeyRecord = { ...record, subjects: response ? held.subjects : record.subjects };
  return await whileActive(services, taken, async () => {
    if (!(await idempotency.takeOver(held, taken))) return undefined;
    services.logger.warn({ status: response?.status, team_id: held.teamId }, "a request whose process is gone was taken up");
    if (!response) return await carryOut(services, taken, once);
    await keepAnswer(services, taken, response);
    return response;
  });
}

function mismatch(): Error {
  const message = "This Idempotency-Key was used for another request before";
  return publicError("key_mismatch", message, { detailCode: "idempotency_request_mismatch" });
}

/** Tokens are kept nowhere: they are derived again. */
function withoutTokens(body: unknown): string {
  return JSON.stringify(body, (name, value) => (name === "envdAccessToken" ? true : value));
}

function replay(services: ApiServices, answer: { readonly status: number; readonly body: string }): OperationResponse {
  const body: unknown = JSON.parse(answer.body, (_name, value) => {
    if (value?.envdAccessToken !== true || typeof value.sandboxID !== "string") return value;
    return { ...value, envdAccessToken: services.accessTokenOf(value.sandboxID) };
  });
  return { status: answer.status, body };
}

/** The same text for the same value, however its fields are ordered. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
