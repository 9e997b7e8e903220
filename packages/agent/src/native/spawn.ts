import { posixSpawn, type SpawnTarget } from "@skerry/base/posix-spawn";
import { libc } from "./libc.ts";

/**
 * Starts a guest's program and returns its pid, which is the program's own. stdout and stderr are true pipes, which Node's own spawn
 * does not offer: `echo >/dev/stderr` works on a pipe only. Throws SpawnError when execve refuses it.
 */
export function spawnProgram(target: SpawnTarget): number {
  return posixSpawn(libc(), target);
}
