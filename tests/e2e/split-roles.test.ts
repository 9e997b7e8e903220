import { setTimeout as sleep } from "node:timers/promises";
import { startPlatform, startPostgres } from "@skerry/testkit";
import { itInFullRuns } from "@skerry/testkit/depth";
import { Sandbox } from "e2b";
import { expect, it } from "vitest";
import { clientOf } from "./client.ts";

it("api, edge and node work as three processes over PostgreSQL", async () => {
  await using postgres = await startPostgres();
  await using platform = await startPlatform({
    roles: ["node", "api", "edge"],
    env: { SKERRY_DATABASE_URL: await postgres.createDatabase("skerry") },
  });
  expect(platform.pids()).toHaveLength(3);
  const sandbox = await Sandbox.create(clientOf(platform));
  await sandbox.files.write("hello.py", "print(sum(range(10)))");
  expect((await sandbox.commands.run("python3 hello.py")).stdout).toBe("45\n");
  const large = "x".repeat(4 * 1024 * 1024);
  await sandbox.files.write("large", large);
  expect(await sandbox.files.read("large")).toBe(large);
  // The URL does not name the sandbox. The edge asks the API which sandbox made the signature.
  expect(await (await fetch(await sandbox.downloadUrl("hello.py"))).text()).toBe("print(sum(range(10)))");

  // Each of the three processes may end at any time. Sandboxes keep running and are found again.
  for (const role of ["edge", "api", "node"]) {
    await platform.kill9(role);
    if (role === "api") {
      // Longer than the edge caches a route.
      await sleep(6_000);
      expect((await sandbox.commands.run("echo reached")).stdout).toBe("reached\n");
    }
    await platform.start();
    expect((await sandbox.commands.run("echo still here")).stdout).toBe("still here\n");
  }
  await sandbox.kill();
  expect(await sandbox.isRunning()).toBe(false);

  // The node's own listener requires the cluster secret.
  const knock = await fetch(`http://127.0.0.1:${platform.ports.node}/skerry.node.v1.NodeService/ListSandboxes`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: "{}",
  });
  expect(knock.status).toBe(401);
});

itInFullRuns(
  "an API process starts although a node is down, uses the node when it answers, and can stop while it waits for the node",
  async () => {
    await using platform = await startPlatform({ roles: ["node", "api", "edge"] });
    const waits = () => platform.logs().split("node does not answer yet").length;
    const sandbox = await Sandbox.create(clientOf(platform));
    await platform.kill9();
    await platform.start("api");
    await expect(Sandbox.create(clientOf(platform))).rejects.toThrow("there is no machine to run it");
    await platform.start();
    await expect.poll(() => sandbox.commands.run("echo here").then(({ stdout }) => stdout, String)).toBe("here\n");
    await (await Sandbox.create(clientOf(platform))).kill();

    await platform.kill9();
    const before = waits();
    const start = platform.start("api").catch(() => {});
    await expect.poll(waits).toBeGreaterThan(before);
    await platform.stop();
    await start;
    expect(platform.pids()).toEqual([]);
    await platform.start();
    await sandbox.kill();
  },
);
