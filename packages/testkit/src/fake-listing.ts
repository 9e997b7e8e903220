import { decodeOptions, headerRulesOf, isReplacedBy, outgoingProxyOf, type SandboxSpec } from "@skerry/wire/node";

export interface FakeHeld {
  readonly state: string;
  readonly memoryLostReason?: string;
  readonly spec: SandboxSpec;
}

/** A sandbox as a fake node lists it. */
export function listedSandbox(sandboxId: string, { state, memoryLostReason = "", spec }: FakeHeld) {
  const options = spec.options && decodeOptions(spec.options);
  const needsSecrets = options && (headerRulesOf(options).length > 0 || outgoingProxyOf(options) !== undefined);
  return { sandboxId, state, memoryLostReason, ...(needsSecrets ? { secretsVersion: spec.secrets?.version ?? "" } : {}) };
}

/** Whether a sandbox has later options than these. */
export function isLate({ options: before }: SandboxSpec, options: NonNullable<SandboxSpec["options"]>): boolean {
  return before !== undefined && isReplacedBy(decodeOptions(before), decodeOptions(options));
}
