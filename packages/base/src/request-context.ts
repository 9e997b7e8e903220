// Who asked for what is being done now. It follows the calls of a request, also the ones that go on after its answer, so that a change
// deep in the store can name its cause without a parameter in every function between.

import { AsyncLocalStorage } from "node:async_hooks";

/** The line of the audit log that a request has begun. The first transaction of the request that writes anything writes it down. */
export interface BegunAuditLine {
  readonly requestId: string;
  /** The process that completes the line. */
  readonly run: string;
  /** What is known before the answer, as JSON. */
  text(): string;
  /** Whether it is in the database. Set by the store. */
  isWritten: boolean;
  /** Whether the line is complete, or none is wanted. Then nothing is written down any more. */
  readonly isOver: boolean;
  /** The team that the request turned out to be about. */
  noteTeam(teamId: string): void;
}

export interface RequestContext {
  readonly requestId: string;
  /** As in the journal: `key:<id>`, `user:<id>`, `admin`, `traffic`, or `anyone`. */
  readonly actor: string;
  readonly audit?: BegunAuditLine;
}

const requests = new AsyncLocalStorage<RequestContext>();

export function withRequest<T>(request: RequestContext, work: () => T): T {
  return requests.run(request, work);
}

/** Undefined: the platform works for itself. */
export function currentRequest(): RequestContext | undefined {
  return requests.getStore();
}
