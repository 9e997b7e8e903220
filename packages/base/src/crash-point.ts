// For tests only: the process kills itself with SIGKILL at a named point, as the kernel or an operator could at any time.
// Nothing happens unless a test has armed a point.

let armed: string | undefined;

/** Kills this process the next time that it reaches `name`. `undefined` disarms. */
export function armCrashPoint(name: string | undefined): void {
  armed = name;
}

/** A point at which a test can kill this process. Costs one comparison. */
export function reachCrashPoint(name: string): void {
  if (armed === name) process.kill(process.pid, "SIGKILL");
}
