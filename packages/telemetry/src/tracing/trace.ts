// Traces of what the roles do for one request. This module loads nothing of OpenTelemetry: without a receiver, `traced` only calls its work.
//
// Attributes must not contain secrets, nor what callers and guests write: names of operations, ids and counts only. Of an error, a span has
// the code and never the message.

/** What a span says about itself. */
export type SpanFacts = Readonly<Record<string, string | number | boolean>>;

export interface SpanAbout {
  readonly name: string;
  /** Whether the span is this side of a call, the other side, or neither. */
  readonly kind?: "server" | "client";
  readonly facts?: SpanFacts;
  /** The value of the header `traceparent` that a caller sent, who must be trusted. Default: the current span. */
  readonly parent?: string | undefined;
}

export interface Tracing {
  run<T>(about: SpanAbout, work: () => Promise<T>): Promise<T>;
  /** The header `traceparent` for calls that the current span makes; undefined outside of a span. */
  header(): string | undefined;
  note(facts: SpanFacts): void;
  outside<T>(work: () => T): T;
  recordPast(about: SpanAbout, durationMs: number): void;
}

/** The header of the W3C recommendation "Trace Context". */
export const TRACE_HEADER = "traceparent";

let tracing: Tracing | undefined;

/** Turns traces on, or off with undefined. */
export function useTracing(wanted: Tracing | undefined): void {
  tracing = wanted;
}

/** Runs `work` in a span. Without a parent the span begins a trace. */
export function traced<T>(about: SpanAbout, work: () => Promise<T>): Promise<T> {
  return tracing === undefined ? work() : tracing.run(about, work);
}

/** The same, but only within a span or for a caller that sent one: what the platform does for itself begins no traces. */
export function tracedWithin<T>(about: SpanAbout, work: () => Promise<T>): Promise<T> {
  if (tracing === undefined || (about.parent === undefined && tracing.header() === undefined)) return work();
  return tracing.run(about, work);
}

/** The value of `TRACE_HEADER` for a call; undefined when there is no trace. */
export function traceHeader(): string | undefined {
  return tracing?.header();
}

/** Runs work that a request only sets off, and that does not belong to its trace. */
export function untraced<T>(work: () => T): T {
  return tracing === undefined ? work() : tracing.outside(work);
}

/** Adds facts to the current span, if there is one. */
export function noteInTrace(facts: SpanFacts): void {
  tracing?.note(facts);
}

/** Adds a span that ends now and began so long ago, within the current one. */
export function recordPastSpan(about: SpanAbout, durationMs: number): void {
  if (tracing?.header() !== undefined) tracing.recordPast(about, durationMs);
}
