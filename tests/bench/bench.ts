import type { Distribution } from "./statistics.ts";

export interface Row extends Distribution {
  readonly name: string;
  readonly unit: string;
  readonly samples: readonly number[];
}

export interface BenchResult {
  readonly rows: readonly Row[];
  readonly notes: readonly string[];
}

/** Sizes of the slow measurements. Smaller sizes give less precise figures sooner. */
export interface BenchOptions {
  /** Size of what the agent, the edge and nginx transfer. */
  readonly transferMb: number;
  /** Size of the file that is transferred while the agent's memory is measured. */
  readonly largeMb: number;
  /** Number of processes whose output is streamed at the same time. */
  readonly streams: number;
}

export interface Bench {
  readonly name: string;
  readonly title: string;
  run(options: BenchOptions): Promise<BenchResult>;
}

/** A row without its statistics. */
export type Measured = readonly [name: string, unit: string, samples: readonly number[]];
