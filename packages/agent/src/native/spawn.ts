import { posixSpawn, type SpawnTarget } from "@skerry/base/posix-spawn";
import { libc } from "./libc.ts";

/**
 * Starts a guest's program and returns the pid of that program. Throws SpawnError when execve fails. Unlike with Node's own spawn,
 * stdout and stderr are real pipes: `echo >/dev/stderr` works only on a pipe.
 */
export function spawnProgram(target: SpawnTarget): number {
  return posixSpawn(libc(), target);
}
