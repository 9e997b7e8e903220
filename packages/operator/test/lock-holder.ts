// A process that has the lock of a data folder, as `serve` has it, and does nothing.

import { once } from "node:events";
import { join } from "node:path";
import { spawnCommand } from "@skerry/base";

const PROGRAM = `
  const { holdDaemonLock } = await import(${JSON.stringify(join(import.meta.dirname, "../src/daemon/daemon-lock.privileged.ts"))});
  if (!holdDaemonLock(process.argv[1])) process.exit(1);
  process.stdout.write("held");
  setInterval(() => {}, 2 ** 30);
`;

/** Resolves when it has the lock. */
export async function startLockHolder(lockFile: string): Promise<ReturnType<typeof spawnCommand>> {
  const child = spawnCommand(process.execPath, ["--input-type=module", "--eval", PROGRAM, lockFile], { stdout: "pipe" });
  const failed = once(child, "exit").then(() => {
    throw new Error("it ended without the lock");
  });
  await Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), failed]);
  failed.catch(() => {});
  return child;
}
