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

/** Sizes of what takes long; a smaller run says less but is over sooner. */
export interface BenchOptions {
  /** Of the file that is sent beside nginx. */
  readonly transferMb: number;
  /** Of the file whose transfer must not take memory. */
  readonly largeMb: number;
  readonly streams: number;
}

export interface Bench {
  readonly name: string;
  readonly title: string;
  run(options: BenchOptions): Promise<BenchResult>;
}

/** A row before its statistics. */
export type Measured = readonly [name: string, unit: string, samples: readonly number[]];
