import { OperatorError } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";
import { flagsOf, runScript, setUpSoakTemplate } from "./test-cache.ts";

export interface RestoreSoakOptions {
  readonly cycles: string;
  readonly forks: string;
  readonly only?: string;
  readonly parallel: string;
  readonly json?: boolean;
}

/** Takes stateful programs through pauses, resumes and forks. Each one checks its own state after every step. */
export async function soakRestore(context: OperatorContext, options: RestoreSoakOptions): Promise<void> {
  if (context.env.SKERRY_RUNTIME === "runc") {
    throw new OperatorError("soak restore needs gVisor: a pause on runc keeps no memory, so there is no state to check", {
      exit: "usage",
      hints: ["Unset SKERRY_RUNTIME and run it again. It starts its own platform and does not touch a running one."],
    });
  }
  const { cycles, forks, only, parallel, json } = options;
  await runScript(context, {
    command: "soak restore",
    path: "tests/soak/restore/main.ts",
    args: [...flagsOf({ cycles, forks, only, parallel }), ...(json ? ["--json"] : [])],
    prepare: setUpSoakTemplate,
  });
}

export interface LifecycleSoakOptions {
  readonly steps: string;
  readonly atOnce: string;
  readonly runtime: string;
  readonly seed?: string;
  readonly json?: boolean;
}

/** Runs thousands of creates, pauses, resumes and kills, and then looks for leftovers. */
export async function soakLifecycle(context: OperatorContext, { steps, atOnce, runtime, seed, json }: LifecycleSoakOptions): Promise<void> {
  await runScript(context, {
    command: "soak lifecycle",
    path: "tests/soak/lifecycle/main.ts",
    args: [...flagsOf({ steps, "at-once": atOnce, runtime, seed }), ...(json ? ["--json"] : [])],
  });
}
