// A platform's data folder without the set-up that fills it: quick to load, for the processes of tests.

export { clientVariables } from "./client-variables.ts";
export { writeProcessRecord } from "./daemon/process-record.ts";
export { takeSetupLock } from "./daemon/setup-lock.ts";
export { createDataFolder, type DataFolder } from "./data-folder.ts";
export { ensureSecrets, type Secrets } from "./secrets.ts";
export type { PlatformSettings, RuntimeName } from "./settings.ts";
export { unmountBelow } from "./testing/unmount-below.ts";
