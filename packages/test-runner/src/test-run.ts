// The folder of one run, shared by `./skerry test`, Vitest and the tests: which files run in which order, what a sample leaves out, and the
// result of each file. Results are written as they come, so that an interrupted run can be resumed.

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type { TestDepth } from "./test-files.ts";

/** Paths of test files relative to the repository, in the order in which they start. */
export interface TestPlan {
  readonly files: readonly string[];
}

/** One matrix or count of which a sample ran a part. */
export interface LeftOut {
  /** A plural, such as "crash points" or "runtimes". */
  readonly what: string;
  /** The suite, if several suites leave out the same. */
  readonly suite?: string;
  readonly ran: number;
  readonly of: number;
}

export interface FileResult {
  /** Relative to the repository. */
  readonly file: string;
  readonly seconds: number;
  readonly passed: number;
  /** One line for each test that failed or was skipped. */
  readonly failures: readonly string[];
}

export class TestRun {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
    mkdirSync(dir, { recursive: true });
  }

  writePlan(plan: TestPlan): void {
    writeFileSync(join(this.dir, "plan.json"), JSON.stringify(plan));
  }

  readPlan(): TestPlan {
    return JSON.parse(readFileSync(join(this.dir, "plan.json"), "utf8")) as TestPlan;
  }

  addResult(result: FileResult): void {
    this.#append("results.jsonl", result);
  }

  readResults(): FileResult[] {
    return this.#read("results.jsonl");
  }

  addLeftOut(leftOut: LeftOut): void {
    this.#append("left-out.jsonl", leftOut);
  }

  readLeftOut(): LeftOut[] {
    return this.#read("left-out.jsonl");
  }

  /** Appends with one short write, so that lines of concurrent processes don't mix. */
  #append(name: string, value: unknown): void {
    appendFileSync(join(this.dir, name), `${JSON.stringify(value)}\n`);
  }

  /** Ignores an incomplete last line, whose writer was killed. */
  #read<Value>(name: string): Value[] {
    let text: string;
    try {
      text = readFileSync(join(this.dir, name), "utf8");
    } catch {
      return [];
    }
    return text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Value);
  }
}
