import { readFileSync } from "node:fs";
import { cgroupProcesses } from "@skerry/runtime";

/** Pids on the host of what runs a sandbox's agent: to be stopped, so that it does not answer. */
export function agentProcesses(cgroupPath: string): number[] {
  return cgroupProcesses(cgroupPath).filter((pid) => {
    const maps = readFileSync(`/proc/${pid}/maps`, "utf8");
    return maps.includes("/.skerry/bin/node") && !maps.includes("runsc-1");
  });
}
