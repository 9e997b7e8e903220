import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openLayerStore } from "@skerry/layers";
import { startPlatform } from "@skerry/testkit";
import { writeBusyboxImage } from "@skerry/testkit/busybox";
import { Sandbox } from "e2b";
import { expect, it } from "vitest";
import { clientOf } from "./client.ts";

it.each(["gvisor", "runc"] as const)("an image that holds nothing but busybox works on %s", async (runtime) => {
  await using platform = await startPlatform({ runtime });
  const layers = await openLayerStore(join(platform.dataDir, "layers"));
  const staged = await layers.stagingDir();
  writeBusyboxImage(staged);
  const template = {
    templateId: "busyboxbusyboxbusybo",
    alias: "busybox",
    buildId: randomUUID(),
    layers: [await layers.adopt(staged)],
    cpuCount: 1,
    memoryMB: 256,
    defaultUser: "user",
  };
  writeFileSync(join(platform.dataDir, "templates/busybox.json"), JSON.stringify(template));
  await platform.restart();

  const sandbox = await Sandbox.create("busybox", clientOf(platform));
  // The image has no bash, which the SDK's `commands.run` uses. So the program fails with its exit code.
  await expect(sandbox.commands.run("true")).rejects.toMatchObject({ exitCode: 127 });
  await sandbox.files.write("note", "from outside");
  expect(await sandbox.files.read("note")).toBe("from outside");
  expect((await sandbox.files.list("/bin")).map(({ name }) => name)).toContain("busybox");
  expect((await sandbox.files.getInfo("note")).owner).toBe("user");
  await sandbox.kill();
});
