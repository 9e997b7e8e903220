// The metrics of this process. Packages declare theirs once, in a module of their own, so that they can be listed without a platform.
// The values of a label must come from a fixed list, or from the operator's configuration. Ids of teams and sandboxes, and what callers or
// guests write, are never labels: each new value costs memory here and in Prometheus for good.

import type * as PromClient from "prom-client";
import { Counter, Gauge, Histogram, Registry } from "./prom-client.ts";

const registry = new Registry();

export interface Sample<L extends string> {
  readonly value: number;
  readonly labels?: Readonly<Record<L, string>>;
}

/** Reads values when they are asked for. Undefined: what was measured is gone, and this is not called again. */
export type Source<L extends string> = () => readonly Sample<L>[] | undefined | Promise<readonly Sample<L>[] | undefined>;

/** A metric whose values are read when Prometheus asks for them. */
export interface Observed<L extends string> {
  /** Adds a source, until the returned function is called. The values of all sources with the same labels are added up. */
  observe(source: Source<L>): () => void;
}

interface Definition<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

/** Bounds in seconds for what takes from milliseconds to a minute. */
export const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 30] as const;

/** A source that takes longer is left out of the answer. Prometheus waits ten seconds by default. */
const SOURCE_LIMIT_MS = 3_000;

export function counter<L extends string = never>({ labels = [], ...about }: Definition<L>): PromClient.Counter<L> {
  return new Counter({ ...about, labelNames: labels, registers: [registry] });
}

export function gauge<L extends string = never>({ labels = [], ...about }: Definition<L>): PromClient.Gauge<L> {
  return new Gauge({ ...about, labelNames: labels, registers: [registry] });
}

export function histogram<L extends string = never>(
  definition: Definition<L> & { readonly buckets?: readonly number[] },
): PromClient.Histogram<L> {
  const { labels = [], buckets = SECONDS, ...about } = definition;
  return new Histogram({ ...about, labelNames: labels, buckets: [...buckets], registers: [registry] });
}

export function observedGauge<L extends string = never>({ labels = [], ...about }: Definition<L>): Observed<L> {
  const sources = new Sources<L>();
  new Gauge({
    ...about,
    labelNames: labels,
    registers: [registry],
    async collect() {
      setAll(this, await sources.read());
    },
  });
  return sources;
}

/** Prometheus takes a value that has become smaller for one that began again at 0. */
export function observedCounter<L extends string = never>({ labels = [], ...about }: Definition<L>): Observed<L> {
  const sources = new Sources<L>();
  new Counter({
    ...about,
    labelNames: labels,
    registers: [registry],
    async collect() {
      setAll(this, await sources.read());
    },
  });
  return sources;
}

function setAll<L extends string>(metric: PromClient.Gauge<L> | PromClient.Counter<L>, samples: readonly Sample<L>[]): void {
  metric.reset();
  // Without labels, a reset metric is 0. Nothing is better where nothing was read.
  if (samples.length === 0) metric.remove({} as PromClient.LabelValues<L>);
  for (const { labels, value } of samples) metric.inc((labels ?? {}) as PromClient.LabelValues<L>, value);
}

class Sources<L extends string> implements Observed<L> {
  readonly #sources = new Set<Source<L>>();

  observe(source: Source<L>): () => void {
    this.#sources.add(source);
    return () => this.#sources.delete(source);
  }

  /** Failure policy: a source that fails or is slow is missing this time, and takes no other value with it. */
  async read(): Promise<readonly Sample<L>[]> {
    const read = await Promise.all([...this.#sources].map((source) => this.#readOne(source)));
    return read.flat();
  }

  async #readOne(source: Source<L>): Promise<readonly Sample<L>[]> {
    const late = Promise.withResolvers<readonly Sample<L>[]>();
    const timer = setTimeout(() => late.resolve([]), SOURCE_LIMIT_MS);
    try {
      const samples = await Promise.race([source(), late.promise]);
      if (samples === undefined) this.#sources.delete(source);
      return samples ?? [];
    } catch {
      return [];
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Lets one of prom-client's own modules add its metrics. */
export function addTo(add: (to: PromClient.Registry) => void): void {
  add(registry);
}

let reading: Promise<string> | undefined;

/** All metrics in the text format of Prometheus. Callers that ask at the same time share one reading. */
export function readMetrics(): Promise<string> {
  reading ??= registry.metrics().finally(() => {
    reading = undefined;
  });
  return reading;
}

export const METRICS_CONTENT_TYPE = registry.contentType;

export interface MetricFacts {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** The metrics that are declared so far. */
export function listMetrics(): readonly MetricFacts[] {
  // The objects have a type and label names, which the declaration of prom-client leaves out.
  const metrics = registry.getMetricsAsArray() as unknown as (MetricFacts & { readonly labelNames: readonly string[] })[];
  return metrics.map(({ name, type, help, labelNames }) => ({ name, type, help, labels: labelNames }));
}
