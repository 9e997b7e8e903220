import "./errors.ts";

export type { BuildDeps } from "./build-deps.ts";
export { BuildFailure } from "./build-failure.ts";
export type {
  BuildCommand,
  BuildCopy,
  BuildHost,
  BuildLog,
  BuildSandbox,
  BuildSize,
  CommandEnd,
  LogLevel,
} from "./build-host.ts";
export { holderOfBuild } from "./build-state.ts";
export { openStepCache, type StepCacheOptions } from "./cache/folder-step-cache.ts";
export type { BuildTrail, CachedStep, StepCache, TrailStep } from "./cache/step-cache.ts";
export type { StepContext } from "./context.ts";
export { commandRefused, copyFailed, sandboxLost } from "./host-errors.ts";
export { CHAIN_LIMITS, type ChainLimits } from "./merge-chain.privileged.ts";
export { type BuiltTemplate, runBuild } from "./run-build.ts";
export { registryCredentials } from "./sources/registry-credentials.ts";
export type { ImageSettings } from "./sources/source.ts";
export { loginShell, type ShellCommand } from "./steps/login-shell.ts";
