// What a data folder needs before a platform starts from it. Operators and tests prepare theirs with the same code.

export { NO_IMAGE } from "./base/base-image.ts";
export { parseOsRelease } from "./base/distribution.ts";
export { type BaseTemplate, ensureBaseTemplate } from "./base/ensure-base.ts";
export { ensureDebianPackages, missingPackages, PLATFORM_PACKAGES, TEST_PACKAGES } from "./debian-packages.ts";
export type { CurrentAgent } from "./ensure-agent.ts";
export { removeOldAgents } from "./remove-old-agents.ts";
export { findRunsc } from "./runsc/sources.ts";
export { type SetUpOptions, setUp } from "./set-up.ts";
export { ensureSoakTemplate, type SoakTemplate } from "./soak/ensure-soak-template.ts";
export { type Report, type Steps, silentSteps } from "./steps.ts";
export { ensureLocalCertificate, type LocalCertificate } from "./tls/local-certificate.ts";
export { toolEnvironment } from "./tool-environment.ts";
export { readTools } from "./tools.ts";
