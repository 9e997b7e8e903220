import { readFileSync, writeFileSync } from "node:fs";
import { errnoOf } from "@skerry/base";
import { type AddressPlan, planAddresses, routedPrefixes } from "@skerry/runtime";

/** The address pool of this node: as set, else as chosen at its first start, else a free one, chosen now and written down. */
export async function chooseAddressPool(options: { file: string; wanted: string | undefined; instance: string }): Promise<AddressPlan> {
  const { file, wanted, instance } = options;
  const chosen = wanted ?? readChoice(file);
  const plan = planAddresses({ wanted: chosen, instance, routed: chosen === undefined ? await routedPrefixes() : [] });
  writeFileSync(file, JSON.stringify({ pool: plan.pool }), { mode: 0o600 });
  return plan;
}

function readChoice(file: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as { pool?: string }).pool;
  } catch (error) {
    if (error instanceof SyntaxError || errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
