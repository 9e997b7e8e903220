export { ensureDebianPackages, missingPackages, PLATFORM_PACKAGES, TEST_PACKAGES } from "./debian-packages.ts";
export { type SetUpOptions, setUp } from "./set-up.ts";
