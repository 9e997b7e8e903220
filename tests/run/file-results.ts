import { relative } from "node:path";
import { type FileResult, TestRun } from "@skerry/test-runner/test-run";
import type { Reporter, TestModule, Vitest } from "vitest/node";

/** Writes the result of each file as soon as the file has ended. */
export class FileResults implements Reporter {
  readonly #run: TestRun;
  #root = "";

  constructor(runDir: string) {
    this.#run = new TestRun(runDir);
  }

  onInit({ config }: Vitest): void {
    this.#root = config.root;
  }

  onTestModuleEnd(module: TestModule): void {
    const { prepareDuration, environmentSetupDuration, setupDuration, collectDuration, duration } = module.diagnostic();
    const milliseconds = prepareDuration + environmentSetupDuration + setupDuration + collectDuration + duration;
    this.#run.addResult({
      file: relative(this.#root, module.moduleId),
      seconds: Math.round(milliseconds / 100) / 10,
      ...outcomeOf(module),
    });
  }
}

/** A skipped test has not passed. A file with failed hooks or imports has failed even if none of its tests did. */
function outcomeOf(module: TestModule): Pick<FileResult, "passed" | "failures"> {
  let passed = 0;
  const failures: string[] = [];
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === "passed") passed += 1;
    else failures.push(`${test.fullName}${state === "failed" ? "" : ` (${state})`}`);
  }
  if (failures.length === 0 && module.state() !== "passed") {
    failures.push((module.errors()[0]?.message ?? "the file ran no test").split("\n")[0] ?? "");
  }
  return { passed, failures };
}
