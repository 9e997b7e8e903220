import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { cgroupProcesses } from "@skerry/runtime";

/** Pids on the host of the processes that run the agent of a sandbox. A test stops them, so that the agent does not answer. */
export function agentProcesses(cgroupPath: string): number[] {
  return cgroupProcesses(cgroupPath).filter((pid) => {
    const maps = readFileSync(`/proc/${pid}/maps`, "utf8");
    const program = readlinkSync(`/proc/${pid}/exe`);
    // gVisor's kernel has mapped the agent's files too, but also its own program, which stubs have not.
    const isKernel = basename(program).startsWith("runsc") && maps.includes(program);
    return maps.includes("/.skerry/bin/node") && !isKernel;
  });
}
