import type { IncomingHttpHeaders } from "node:http";
import type { BegunAuditLine } from "@skerry/base";
import type { AuditFacts, NewAuditLine } from "@skerry/store";
import type { Caller } from "../keys/caller.ts";
import { ACCESS_TOKEN_PREFIX, API_KEY_PREFIX, maskOf, parseCredential } from "../keys/credential.ts";

/** What the audit log wants to know of an operation. */
export interface AuditedOperation {
  readonly id: string;
  readonly method: string;
  readonly scope: string;
}

export interface RequestFacts {
  readonly requestId: string;
  readonly run: string;
  readonly operation: AuditedOperation;
  readonly headers: IncomingHttpHeaders;
  /** Of the client, behind trusted proxies. Called only for requests that get a line. */
  readonly addressOf: () => string;
  readonly params: unknown;
  /** Of a monotonic clock. */
  readonly arrivedAt: number;
}

export interface Answer {
  readonly status: number;
  /** The code of the error, if it is one. */
  readonly reason?: string | undefined;
  readonly body?: unknown;
}

/** Longest text of a column that a caller can fill. */
const MAX_TEXT = 200;
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 429]);

/** The actor in the journal, in events and in the audit log. */
export function actorOf(caller: Caller): string {
  if (caller.kind === "team") return caller.actor;
  return caller.kind === "user" ? `user:${caller.userId}` : caller.kind;
}

/** One request to an operation, from its arrival to its answer. */
export class AuditedRequest implements BegunAuditLine {
  readonly #facts: RequestFacts;
  readonly #isChange: boolean;
  #caller: Caller = { kind: "anyone" };
  #teamId: string | null = null;
  isWritten = false;
  #isOver: boolean;
  #isComplete = false;

  constructor(facts: RequestFacts) {
    this.#facts = facts;
    // Some reads give out a right to change something, such as the link for an upload. Their scope says so.
    this.#isChange = facts.operation.method !== "GET" || /:(write|build)$/.test(facts.operation.scope);
    this.#isOver = !this.#isChange;
  }

  get requestId(): string {
    return this.#facts.requestId;
  }

  get run(): string {
    return this.#facts.run;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  noteCaller(caller: Caller): void {
    this.#caller = caller;
    if (caller.kind === "team") this.#teamId = caller.team.id;
  }

  noteTeam(teamId: string): void {
    this.#teamId = teamId;
  }

  text(): string {
    return JSON.stringify(this.#begun());
  }

  /** The complete line, once; undefined for a request that gets none: a read that was not refused. */
  complete(answer: Answer, now: number): NewAuditLine | undefined {
    this.#isOver = true;
    const isRefused = REFUSALS.has(answer.status);
    if (this.#isComplete || (!this.#isChange && !isRefused)) return undefined;
    this.#isComplete = true;
    return {
      ...this.#begun(),
      outcome: answer.status < 400 ? "done" : isRefused ? "refused" : "failed",
      status: answer.status,
      reason: answer.reason ?? null,
      durationMs: Math.max(0, Math.round(now - this.#facts.arrivedAt)),
      madeIds: answer.status < 400 ? idsIn(answer.body) : null,
      count: 1,
    };
  }

  #begun(): AuditFacts {
    const { requestId, operation, params, addressOf } = this.#facts;
    return {
      requestId,
      operation: operation.id,
      teamId: this.#teamId,
      actor: actorOf(this.#caller),
      userId: this.#userId,
      ...this.#credential,
      address: bounded(addressOf()) || null,
      subjectId: subjectIn(params),
    };
  }

  get #userId(): string | null {
    const caller = this.#caller;
    return (caller.kind === "team" || caller.kind === "user" ? caller.userId : undefined) ?? null;
  }

  get #credential(): Pick<AuditFacts, "credentialId" | "credentialMask"> {
    const caller = this.#caller;
    const shown = caller.kind === "team" || caller.kind === "user" ? caller.credential : undefined;
    if (shown) return { credentialId: shown.id, credentialMask: shown.mask };
    return { credentialId: null, credentialMask: caller.kind === "anyone" ? maskIn(this.#facts.headers) : null };
  }
}

/** Shows so much of an unknown key or token as a list shows of a known one. Anything that has not the form of one may be a password. */
function maskIn(headers: IncomingHttpHeaders): string | null {
  const key = headers["x-api-key"];
  if (typeof key === "string") return parseCredential(key, API_KEY_PREFIX).kind === "hash" ? maskOf(key, API_KEY_PREFIX) : null;
  const token = headers.authorization?.replace(/^Bearer /, "");
  if (token === undefined) return null;
  return parseCredential(token, ACCESS_TOKEN_PREFIX).kind === "hash" ? maskOf(token, ACCESS_TOKEN_PREFIX) : null;
}

/** The last id in the path, which is what the operation is about. */
function subjectIn(params: unknown): string | null {
  const values = Object.values((params ?? {}) as Record<string, unknown>).filter((value) => typeof value === "string");
  const last = values.at(-1);
  return last === undefined ? null : bounded(last);
}

const ID_FIELDS = [
  "sandboxID",
  "snapshotID",
  "buildID",
  "templateID",
  "secretID",
  "webhookID",
  "linkID",
  "volumeID",
  "invitationID",
  "teamID",
  "userID",
  "id",
];

function idsIn(body: unknown): string | null {
  const found = (Array.isArray(body) ? body : [body]).flatMap((one) => {
    const fields = (one ?? {}) as Record<string, unknown>;
    const id = ID_FIELDS.map((field) => fields[field]).find((value) => typeof value === "string");
    return id === undefined ? [] : [String(id)];
  });
  return found.length === 0 ? null : found.join(",").slice(0, 1_000);
}

/** A text of a caller, without characters that could change how a line looks. */
function bounded(text: string): string {
  return text.slice(0, MAX_TEXT).replaceAll(/[^\x20-\x7e]/g, "?");
}
