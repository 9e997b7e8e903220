import { randomUUID } from "node:crypto";
import { type Platform, prepareSoakTemplate, startPlatform } from "@skerry/testkit";

export interface SoakPlatform {
  readonly platform: Platform;
  readonly template: { readonly alias: string; readonly memoryMB: number };
}

const MEMORY_MB = 1024;

/** Starts a platform with the soak's template. */
export async function startSoakPlatform(): Promise<SoakPlatform> {
  const { system, goProgram } = await prepareSoakTemplate();
  const template = {
    templateId: "soak",
    alias: "soak",
    buildId: randomUUID(),
    layers: [system.layer, goProgram.layer],
    cpuCount: 2,
    memoryMB: MEMORY_MB,
    diskSizeMB: 4096,
  };
  return { platform: await startPlatform({ templates: [template] }), template };
}
