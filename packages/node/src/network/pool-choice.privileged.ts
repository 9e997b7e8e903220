import { type AddressPlan, planAddresses, routedPrefixes } from "@skerry/runtime";
import { readNetworkPool, writeNetworkPool } from "../records/network-record.ts";
import { type PoolReservation, reservePool } from "./pool-reservation.ts";

export interface ChosenPool {
  readonly plan: AddressPlan;
  /** Undefined when another process has reserved the same pool, which the operator or an earlier start has chosen. */
  readonly reservation: PoolReservation | undefined;
}

export interface PoolChoiceOptions {
  /** Records the choice. */
  readonly file: string;
  /** The configured pool. */
  readonly wanted: string | undefined;
  readonly instance: string;
  /** Whether slots have IPv6. */
  readonly ipv6: boolean;
  /** Whether sandboxes have addresses of the recorded pool. */
  readonly isInUse: boolean;
}

/**
 * The node's address pool: the configured one, or the recorded one of an earlier start, or a free one, which is recorded. A recorded pool that
 * is not in use is given up when another process has reserved it since. The caller releases the reservation when the node stops. Throws
 * PlatformError("network_pool_empty").
 */
export async function chooseAddressPool({ file, wanted, instance, ipv6, isInUse }: PoolChoiceOptions): Promise<ChosenPool> {
  const known = readNetworkPool(file);
  const chosen = wanted ?? known;
  if (chosen !== undefined) {
    const plan = planAddresses({ wanted: chosen, instance, ipv6, routed: [] });
    const reservation = await reservePool(plan.pool);
    if (reservation || wanted !== undefined || isInUse) return record({ plan, reservation });
  }
  const taken = await routedPrefixes();
  for (;;) {
    const plan = planAddresses({ wanted: undefined, instance, ipv6, routed: taken });
    const reservation = await reservePool(plan.pool);
    if (reservation) return record({ plan, reservation });
    taken.push(plan.pool);
  }

  function record(choice: ChosenPool): ChosenPool {
    if (choice.plan.pool !== known) writeNetworkPool(file, choice.plan.pool);
    return choice;
  }
}
