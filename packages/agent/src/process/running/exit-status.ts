import type { ExitStatus } from "@skerry/base/posix-spawn";

// Clients compare these texts ("signal: killed"), so they are part of the wire format: the names of Go's runtime on Linux.
const SIGNAL_TEXTS: Readonly<Record<number, string>> = {
  1: "hangup",
  2: "interrupt",
  3: "quit",
  4: "illegal instruction",
  5: "trace/breakpoint trap",
  6: "aborted",
  7: "bus error",
  8: "floating point exception",
  9: "killed",
  10: "user defined signal 1",
  11: "segmentation fault",
  12: "user defined signal 2",
  13: "broken pipe",
  14: "alarm clock",
  15: "terminated",
};

export interface EndFields {
  readonly exitCode: number;
  readonly exited: boolean;
  readonly status: string;
  readonly error?: string;
}

export function endFields(status: ExitStatus): EndFields {
  if (status.signal !== undefined) {
    const name = SIGNAL_TEXTS[status.signal] ?? `signal ${status.signal}`;
    const text = `signal: ${name}${status.coreDumped ? " (core dumped)" : ""}`;
    return { exitCode: -1, exited: false, status: text, error: text };
  }
  const exitCode = status.exitCode ?? 0;
  const text = `exit status ${exitCode}`;
  return exitCode === 0 ? { exitCode, exited: true, status: text } : { exitCode, exited: true, status: text, error: text };
}
