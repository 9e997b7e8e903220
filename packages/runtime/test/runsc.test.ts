import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunscRuntime, readHostFacts } from "@skerry/runtime";
import { runtimeContract } from "@skerry/testkit/contracts/runtime-contract";
import { testTools } from "@skerry/testkit/tools";
import { expect, it } from "vitest";

const create = (stateDir: string) => createRunscRuntime({ binary: testTools().runsc, stateDir, host: readHostFacts() });

runtimeContract({ name: "runsc", create });

it("finds and removes the socket of a start that was killed before it wrote its state", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "skerry-runsc-"));
  try {
    const runtime = create(stateDir);
    const id = `i${"s".repeat(20)}`;
    writeFileSync(join(stateDir, `runsc-${id}.sock`), "");
    expect(await runtime.list()).toEqual([id]);
    await runtime.destroy({ id, cgroupPath: `/skerry-test-none/${id}` });
    expect(await runtime.list()).toEqual([]);
    expect(readdirSync(stateDir)).not.toContain(`runsc-${id}.sock`);
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
});
