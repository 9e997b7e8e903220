// For tests alone: this process ends itself with SIGKILL at a named point, as the kernel or an operator might at any time.
// Nothing happens unless a point was armed.

let armed: string | undefined;

/** The next time that `name` is reached is this process's end. `undefined` disarms. */
export function armCrashPoint(name: string | undefined): void {
  armed = name;
}

/** A point that tests end this process at. Costs one comparison. */
export function reachCrashPoint(name: string): void {
  if (armed === name) process.kill(process.pid, "SIGKILL");
}
