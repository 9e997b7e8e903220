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

export interface Bench {
  readonly name: string;
  readonly title: string;
  run(): Promise<BenchResult>;
}
