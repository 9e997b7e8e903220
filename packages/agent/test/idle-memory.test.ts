import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { run, startAgentUnderTest } from "./agent-under-test.ts";

/** Private memory that is not backed by a file. */
function ownMiB(pid: number): number {
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

it("releases memory to the host when it is idle", async () => {
  await using agent = await startAgentUnderTest();
  const { pid } = agent;
  await agent.init({});
  await run(agent, "/bin/true");
  const started = ownMiB(pid);
  await expect.poll(() => started - ownMiB(pid), { interval: 1_000 }).toBeGreaterThan(2);
  const idle = ownMiB(pid);

  await Promise.all(Array.from({ length: 300 }, () => run(agent, "head", ["-c", "100000", "/dev/zero"])));
  const busy = ownMiB(pid);
  expect(busy - idle).toBeGreaterThan(20);
  // A health check does not count as work.
  const left = async () => {
    await agent.fetch("/health");
    return ownMiB(pid) - idle;
  };
  await expect.poll(left, { interval: 1_000 }).toBeLessThan((busy - idle) / 3);
});
