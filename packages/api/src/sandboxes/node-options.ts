import {
  encodeOptions,
  lowerLimits,
  networkLimitsOf,
  type SandboxOptions,
  withNetworkLimits,
  withoutSealedPassword,
} from "@skerry/wire/node";
import type { SandboxDeps } from "./deps.ts";

/** The options of a sandbox as its node gets them: without what is for the control plane alone, and within the present limits of its team. */
export async function optionsForNode(
  { limits }: Pick<SandboxDeps, "limits">,
  { teamId, options }: { readonly teamId: string; readonly options: SandboxOptions },
) {
  const ofTeam = await limits.networkOfSandbox(teamId);
  return encodeOptions(withNetworkLimits(withoutSealedPassword(options), lowerLimits(networkLimitsOf(options), ofTeam)));
}
