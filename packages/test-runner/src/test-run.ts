// The folder through which `./skerry test`, the test runner and the tests talk about one run: which files in which order, what a
// sample left out, and the result of each file as soon as it is known, so that a run that is interrupted can be resumed.

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type { TestDepth } from "./test-files.ts";

/** Paths of test files, relative to the repository, in the order in which they are to start. */
export interface TestPlan {
  readonly files: readonly string[];
}

/** One matrix or count of which a sample took a part. */
export interface LeftOut {
  /** In the plural: "crash points", "runtimes". */
  readonly what: string;
  /** The one suite that it is about, where others leave out the same. */
  readonly suite?: string;
  readonly ran: number;
  readonly of: number;
}

export interface FileResult {
  /** Relative to the repository. */
  readonly file: string;
  readonly seconds: number;
  readonly passed: number;
  /** What failed or was skipped, one line each. */
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

  /** One short write, so that processes that do it at once don't mix their lines. */
  #append(name: string, value: unknown): void {
    appendFileSync(join(this.dir, name), `${JSON.stringify(value)}\n`);
  }

  /** A last line that was cut off, because its writer was killed, counts as not written. */
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
