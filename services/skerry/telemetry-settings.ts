import { isIP } from "node:net";
import type { ConfigReader } from "@skerry/base";

export interface TraceSettings {
  readonly endpoint: string;
  /** From 0 to 1. */
  readonly share: number;
}

export interface MetricsSettings {
  readonly host: string;
  readonly port: number;
}

export function readTraces(reader: ConfigReader): TraceSettings | undefined {
  const endpoint = reader.optional("OTEL_ENDPOINT");
  const share = reader.integer("OTEL_SAMPLE_PERCENT", 100, { min: 0, max: 100 }) / 100;
  if (endpoint === undefined) return undefined;
  const url = URL.parse(endpoint);
  // Not quoted: it may contain credentials, which would be in every log of a failure.
  if (!/^https?:$/.test(url?.protocol ?? "") || url?.username !== "" || url.password !== "" || url.search !== "") {
    reader.problem("SKERRY_OTEL_ENDPOINT takes the base URL of a receiver, without credentials, such as http://127.0.0.1:4318");
  }
  return { endpoint, share };
}

export function readMetrics(reader: ConfigReader): MetricsSettings | undefined {
  const port = reader.integer("METRICS_PORT", 4684, { min: 0, max: 65_535 });
  const host = reader.string("METRICS_LISTEN", "127.0.0.1");
  if (isIP(host) === 0) reader.problem(`SKERRY_METRICS_LISTEN takes an IP address, not "${host}"`);
  return port === 0 ? undefined : { host, port };
}
