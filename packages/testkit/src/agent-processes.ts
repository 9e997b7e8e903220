import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { cgroupProcesses } from "@skerry/runtime";

/** Pids on the host of what runs a sandbox's agent: to be stopped, so that it does not answer. */
export function agentProcesses(cgroupPath: string): number[] {
  return cgroupProcesses(cgroupPath).filter((pid) => {
    const maps = readFileSync(`/proc/${pid}/maps`, "utf8");
    const program = readlinkSync(`/proc/${pid}/exe`);
    // gVisor's kernel has the agent's files mapped as well, and its own program, which its stubs have not.
    const isKernel = basename(program).startsWith("runsc") && maps.includes(program);
    return maps.includes("/.skerry/bin/node") && !isKernel;
  });
}
