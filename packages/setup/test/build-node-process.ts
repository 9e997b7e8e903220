// A set-up that is killed while a step runs: starts a sandbox, says so, and waits for its end.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { dataFolder } from "@skerry/setup/folder";
import { openBuildNode } from "../src/build-node.ts";

const node = await openBuildNode({ folder: dataFolder(process.argv[2] ?? ""), name: "base", runtime: "gvisor", env: {} });
const target = await node.layers.stagingDir();
mkdirSync(join(target, "tmp"));
const layer = await node.layers.adopt(target, { holder: "test" });
await node.host.startSandbox({
  buildId: "test",
  templateId: "test",
  layers: [layer],
  size: { cpuCount: 1, memoryMb: 512, diskSizeMb: 512 },
  runtime: "",
  signal: new AbortController().signal,
});
process.stdout.write("started\n");
setInterval(() => {}, 60_000);
