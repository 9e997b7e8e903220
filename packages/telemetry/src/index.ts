export { listenMetrics, type MetricsListener } from "./listen-metrics.ts";
export {
  counter,
  gauge,
  histogram,
  listMetrics,
  type MetricFacts,
  type Observed,
  observedCounter,
  observedGauge,
  readMetrics,
  type Sample,
  SECONDS,
} from "./metric-registry.ts";
export { measureProcess } from "./process-metrics.ts";
export { startTracing } from "./tracing/start-tracing.ts";
export {
  noteInTrace,
  recordPastSpan,
  type SpanAbout,
  type SpanFacts,
  TRACE_HEADER,
  traced,
  tracedWithin,
  traceHeader,
  untraced,
} from "./tracing/trace.ts";
