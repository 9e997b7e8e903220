import { PlatformError, runCommand, SubprocessError } from "@skerry/base";
import { bandwidthLines } from "./bandwidth.ts";
import type { NetworkNames } from "./names.ts";
import type { NetworkSlot } from "./slot.privileged.ts";

const GUEST_DEVICE = "eth0";

/**
 * Limits what a sandbox sends and what it receives, each to `mbps` (10^6 bits per second, with the headers of IP and Ethernet). The port of the
 * API inside it is exempt towards the host. Replaces a former limit; what waits in its queues is lost, and is sent again like every lost packet.
 * Throws PlatformError("bandwidth_unsupported") on a kernel without token buckets.
 */
export async function limitBandwidth(
  { number, hostInterface, addresses }: NetworkSlot,
  { names, mbps, agentPort }: { readonly names: NetworkNames; readonly mbps: number; readonly agentPort: number },
): Promise<void> {
  const toAgent = `match ip dst ${addresses.guest}/32 match ip dport ${agentPort} 0xffff match ip src ${addresses.host}/32`;
  const fromAgent = `match ip dst ${addresses.host}/32 match ip sport ${agentPort} 0xffff`;
  // First the end that `limitedInterfaces` sees.
  await tc(bandwidthLines({ device: hostInterface, mbps, isGuestEnd: false, unlimited: toAgent }));
  await tc(bandwidthLines({ device: GUEST_DEVICE, mbps, isGuestEnd: true, unlimited: fromAgent }), ["-n", names.namespace(number)]);
}

/** Ends the limit of a sandbox, if it has one. */
export async function freeBandwidth({ number, hostInterface }: NetworkSlot, names: NetworkNames): Promise<void> {
  await tcUnlessGone(GUEST_DEVICE, ["-n", names.namespace(number)]);
  await tcUnlessGone(hostInterface);
}

/** The host interfaces whose bandwidth is limited, or was being limited when a process ended. */
export async function limitedInterfaces({ interfacePrefix }: NetworkNames): Promise<ReadonlySet<string>> {
  const { stdout } = await runCommand("tc", ["-json", "qdisc", "show"]);
  const queues = JSON.parse(stdout) as { kind: string; dev: string; root?: boolean }[];
  const ours = queues.filter(({ kind, dev, root }) => root && dev.startsWith(interfacePrefix) && kind !== "noqueue");
  return new Set(ours.map(({ dev }) => dev));
}

async function tc(lines: readonly string[], args: readonly string[] = []): Promise<void> {
  try {
    await runCommand("tc", [...args, "-batch", "-"], { input: `${lines.join("\n")}\n` });
  } catch (error) {
    const isUnsupported = /qdisc kind is unknown|Unknown qdisc|classifier not found/i;
    if (!(error instanceof SubprocessError) || !isUnsupported.test(error.stderr)) throw error;
    const message = "the kernel of this host cannot limit bandwidth. Leave out the limit; ./skerry doctor names the missing modules";
    throw new PlatformError("bandwidth_unsupported", message, { publicMessage: message, cause: error });
  }
}

async function tcUnlessGone(device: string, args: readonly string[] = []): Promise<void> {
  try {
    await runCommand("tc", [...args, "qdisc", "del", "dev", device, "root"]);
  } catch (error) {
    // The first: there is only the queue that every device has. The others: the slot is gone.
    const isGone = /with handle of zero|Cannot find device|Cannot open network namespace|Invalid handle/;
    if (!(error instanceof SubprocessError) || !isGone.test(error.stderr)) throw error;
  }
}
