import { type AddressPlan, planAddresses, routedPrefixes } from "@skerry/runtime";
import { readNetworkPool, writeNetworkPool } from "../records/network-record.ts";

/** The node's address pool: the configured one, or the one that the first start chose, or a free one, which is chosen and recorded. */
export async function chooseAddressPool(options: { file: string; wanted: string | undefined; instance: string }): Promise<AddressPlan> {
  const { file, wanted, instance } = options;
  const known = readNetworkPool(file);
  const chosen = wanted ?? known;
  const plan = planAddresses({ wanted: chosen, instance, routed: chosen === undefined ? await routedPrefixes() : [] });
  if (plan.pool !== known) writeNetworkPool(file, plan.pool);
  return plan;
}
