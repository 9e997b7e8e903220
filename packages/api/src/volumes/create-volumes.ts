import type { ApiConfig } from "../config.ts";
import type { SandboxDeps } from "../sandboxes/deps.ts";
import { VolumeContent } from "./volume-content.ts";
import { VolumeService } from "./volume-service.ts";
import { VolumeTokens } from "./volume-tokens.ts";

const DEFAULT_SIZE_MB = 10_240;

export function createVolumes(config: ApiConfig, work: SandboxDeps): { readonly service: VolumeService; readonly content: VolumeContent } {
  const { store, nodes, timing, tokenSeed, clock } = work;
  const tokens = new VolumeTokens({ tokenSeed, clock, lifetimeMs: timing.volumeTokenMs });
  const sizeMb = config.volumeSizeMb ?? DEFAULT_SIZE_MB;
  const shared = { volumes: store.volumes, nodes, tokens, timeoutMs: timing.createTimeoutMs };
  return { service: new VolumeService({ ...work, ...shared, deletions: work.volumes, sizeMb }), content: new VolumeContent(shared) };
}
