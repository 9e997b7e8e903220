import type { OperatorContext } from "../context.ts";
import { flagsOf, runScript } from "./test-cache.ts";

export interface BenchSizes {
  readonly transferMb?: string;
  readonly largeMb?: string;
  readonly streams?: string;
}

/** Measures platforms of its own, each beside its peers, and prints a table (stderr) and every sample (stdout, JSON). */
export async function bench(context: OperatorContext, name: string | undefined, sizes: BenchSizes): Promise<void> {
  const flags = flagsOf({ "transfer-mb": sizes.transferMb, "large-mb": sizes.largeMb, streams: sizes.streams });
  await runScript(context, { command: "bench", path: "tests/bench/main.ts", args: name === undefined ? flags : [name, ...flags] });
}
