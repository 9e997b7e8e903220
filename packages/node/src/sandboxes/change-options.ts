import type { SandboxOptions } from "@skerry/wire/node";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { crashPoint } from "../crash-points.ts";

/**
 * Makes these the options of a running sandbox: first the rules, then the record, from which the next daemon makes the rules. After a failure
 * both are the former ones.
 */
export async function changeOptions(
  { deps, containers }: { readonly deps: Pick<HostDeps, "policy">; readonly containers: Pick<Containers, "set"> },
  live: LiveContainer,
  options: SandboxOptions,
): Promise<void> {
  const { slot, options: before } = live.record;
  await deps.policy.apply(slot, options);
  crashPoint("options.applied");
  try {
    containers.set({ ...live.record, options });
  } catch (error) {
    live.record = { ...live.record, options: before };
    await deps.policy.apply(slot, before);
    throw error;
  }
  crashPoint("options.recorded");
}
