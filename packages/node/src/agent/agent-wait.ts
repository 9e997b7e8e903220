import { isSameProcess } from "../containers/process-identity.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import type { AgentWait } from "./agent-client.ts";

const BOOT_TIMEOUT_MS = 30_000;
const RESTORE_TIMEOUT_MS = 15_000;

/** Where the agent of a container that was started is, and for how long it is waited for; one that was brought back listens already. */
export function agentWaitOf(
  { slot, process }: Pick<SandboxRecord, "slot" | "process">,
  { isRestored }: { isRestored: boolean },
): AgentWait {
  return {
    address: slot.addresses.guest,
    isNew: !isRestored,
    timeoutMs: isRestored ? RESTORE_TIMEOUT_MS : BOOT_TIMEOUT_MS,
    isAlive: () => isSameProcess(process),
  };
}
