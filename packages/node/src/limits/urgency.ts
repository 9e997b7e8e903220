import { asError, type Logger } from "@skerry/base";
import { cgroupProcesses, setNiceness, sparedProcesses } from "@skerry/runtime";

const URGENT = -15;
const NORMAL = 0;

/** Gives the agent and gVisor's kernel priority over the other processes of the sandbox while `work` waits for the agent. */
export async function withUrgency<T>(sandbox: { readonly cgroupPath: string }, logger: Logger, work: () => Promise<T>): Promise<T> {
  setUrgency(sandbox.cgroupPath, URGENT);
  try {
    return await work();
  } finally {
    try {
      setUrgency(sandbox.cgroupPath, NORMAL);
    } catch (error) {
      logger.warn({ cgroup: sandbox.cgroupPath, err: asError(error) }, "the agent of a sandbox keeps its raised priority");
    }
  }
}

function setUrgency(cgroupPath: string, niceness: number): void {
  setNiceness(sparedProcesses(cgroupProcesses(cgroupPath)), niceness);
}
