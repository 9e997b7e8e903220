import { asError, type Logger } from "@skerry/base";
import { cgroupProcesses, setNiceness, sparedProcesses } from "@skerry/runtime";

const URGENT = -15;
const NORMAL = 0;

/** While `work` asks a sandbox's agent for help, it and gVisor's kernel go before everything in the sandbox: a hundred programs want the same processors. */
export async function withUrgency<T>(sandbox: { readonly cgroupPath: string }, logger: Logger, work: () => Promise<T>): Promise<T> {
  setUrgency(sandbox.cgroupPath, URGENT);
  try {
    return await work();
  } finally {
    try {
      setUrgency(sandbox.cgroupPath, NORMAL);
    } catch (error) {
      logger.warn({ cgroup: sandbox.cgroupPath, err: asError(error) }, "a sandbox's agent stays urgent");
    }
  }
}

function setUrgency(cgroupPath: string, niceness: number): void {
  setNiceness(sparedProcesses(cgroupProcesses(cgroupPath)), niceness);
}
