// Sends spans to a receiver of OTLP over HTTP, as JSON. Loaded only when the operator names a receiver.
//
// Failure policy: nothing waits for the receiver. Spans wait in a queue of 2,048; further ones, and those that cannot be sent, are dropped.

import { type Context, context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { type Logger, PlatformError } from "@skerry/base";
import { type SpanAbout, TRACE_HEADER, type Tracing } from "./trace.ts";

export interface OtlpOptions {
  /** Base URL of the receiver, such as `http://127.0.0.1:4318`. */
  readonly endpoint: string;
  /** Share of the traces that are sent, from 0 to 1. */
  readonly share: number;
  readonly version: string;
  readonly roles: readonly string[];
  readonly logger: Logger;
}

export interface OtlpTracing extends Tracing {
  /** Sends what waits, for a few seconds at most. */
  close(): Promise<void>;
}

const SEND_TIMEOUT_MS = 5_000;
const CLOSE_LIMIT_MS = 3_000;
/** Minimum interval between two log lines about a receiver that does not take spans. */
const LOG_INTERVAL_MS = 60_000;
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

export function createOtlpTracing({ endpoint, share, version, roles, logger }: OtlpOptions): OtlpTracing {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, "")}/v1/traces`, timeoutMillis: SEND_TIMEOUT_MS });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": "skerry", "service.version": version, "skerry.roles": roles.join(",") }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [new BatchSpanProcessor({ exporter: reporting(exporter, logger), scheduledDelayMillis: 1_000 })],
  });
  const contexts = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(contexts);
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const tracer = provider.getTracer("skerry", version);
  const start = (about: SpanAbout, within: Context, startTime?: number) =>
    tracer.startSpan(
      about.name,
      {
        kind: about.kind === undefined ? SpanKind.INTERNAL : KINDS[about.kind],
        attributes: { ...about.facts },
        ...(startTime === undefined ? {} : { startTime }),
      },
      within,
    );
  return {
    async run(about, work) {
      const parent = about.parent === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, { [TRACE_HEADER]: about.parent });
      const span = start(about, parent);
      try {
        return await context.with(trace.setSpan(parent, span), work);
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR });
        span.setAttribute("error.type", error instanceof PlatformError ? error.code : error instanceof Error ? error.name : "unknown");
        throw error;
      } finally {
        span.end();
      }
    },
    header() {
      const carrier: Record<string, string> = {};
      propagation.inject(context.active(), carrier);
      return carrier[TRACE_HEADER];
    },
    note(facts) {
      trace.getActiveSpan()?.setAttributes({ ...facts });
    },
    outside: (work) => context.with(ROOT_CONTEXT, work),
    recordPast(about, durationMs) {
      const now = Date.now();
      start(about, context.active(), now - durationMs).end(now);
    },
    async close() {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, CLOSE_LIMIT_MS);
      await Promise.race([provider.shutdown().catch(() => {}), late.promise]);
      clearTimeout(timer);
      context.disable();
      propagation.disable();
    },
  };
}

/** Logs, from time to time, that spans were lost. The error may contain the receiver's answer, so the log has only its name. */
function reporting(exporter: SpanExporter, logger: Logger): SpanExporter {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== 0 && performance.now() - loggedAt > LOG_INTERVAL_MS) {
          loggedAt = performance.now();
          logger.warn({ spans: spans.length, error: result.error?.name }, "the receiver of traces did not take them; they are lost");
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}
