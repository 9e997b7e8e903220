// The set-up as a library: for tests, which prepare their platforms with the same code that operators use.

export { type Steps, silentSteps } from "../terminal/steps.ts";
export { NO_IMAGE } from "./base/base-image.ts";
export { type BaseTemplate, ensureBaseTemplate } from "./base/ensure-base.ts";
export { ensureDebianPackages, missingPackages, PLATFORM_PACKAGES, TEST_PACKAGES } from "./debian-packages.ts";
export { ensurePythonSdk } from "./python-sdk.ts";
export { type SetUpOptions, setUp } from "./set-up.ts";
export { ensureSoakTemplate, type SoakTemplate } from "./soak/ensure-soak-template.ts";
export { ensureTestRegistry } from "./test-registry.ts";
