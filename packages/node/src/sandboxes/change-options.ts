import { asError, type Logger } from "@skerry/base";
import { isReplacedBy, type SandboxOptions, type SandboxSecrets } from "@skerry/wire/node";
import { tellSite } from "../agent/agent-client.ts";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { crashPoint } from "../crash-points.ts";
import { siteNow } from "../network/site-network.ts";

interface Deps {
  readonly deps: Pick<HostDeps, "config" | "policy">;
  readonly containers: Pick<Containers, "set">;
  readonly logger: Logger;
}

/**
 * Makes these the options of a running sandbox: first the rules, then the record, from which the next daemon makes the rules. After a failure
 * both are the former ones. A change that arrives after a later one has been replaced by it already.
 */
export async function changeOptions(
  all: Deps,
  live: LiveContainer,
  { options, secrets }: { readonly options: SandboxOptions; readonly secrets: SandboxSecrets | undefined },
): Promise<void> {
  const { deps, containers } = all;
  const { slot, sandboxId, options: before } = live.record;
  if (isReplacedBy(before, options)) {
    all.logger.warn({ sandbox_id: sandboxId }, "a change of a sandbox's options arrived after a later one, which holds");
    return;
  }
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
  await changeSecrets(all, live, secrets);
}

/**
 * Replaces what the node keeps in memory for the options of a sandbox. Failure policy: the guest decides whether its agent answers. If it does
 * not, its programs do not trust the sandbox's authority, and their requests fail.
 */
export async function changeSecrets({ deps, logger }: Deps, live: LiveContainer, secrets: SandboxSecrets | undefined): Promise<void> {
  const { slot, identity, sandboxId } = live.record;
  if (!deps.policy.provide(slot, secrets)) return;
  try {
    const site = siteNow(deps.config, await deps.policy.authorityOf(slot));
    await tellSite(slot.addresses.guest, { accessToken: identity.accessToken, site });
  } catch (error) {
    logger.warn({ sandbox_id: sandboxId, err: asError(error) }, "a sandbox could not be told of its certificate authority");
  }
}
