// The operator's files of a data folder. Loads neither what fills the folder nor a system library, so that `./skerry env` starts fast.

export { EXIT_CODES, OperatorError } from "../operator-error.ts";
export { type AcmeSettings, acmeName, readAcmeSettings } from "./acme-settings.ts";
export { clientVariables, shellQuote, URL_VARIABLES } from "./client-variables.ts";
export { createDataFolder, type DataFolder, DEFAULT_DATA_DIR, dataFolder } from "./data-folder.ts";
export { readJsonFile, writeJsonFile } from "./json-file.ts";
export { ensureKeyFile } from "./key-file.ts";
export {
  describeProcess,
  isAlive,
  type ProcessRecord,
  readLiveProcess,
  removeProcessRecord,
  writeProcessRecord,
} from "./process-record.ts";
export { ensureSecrets, type PlatformOwner, readSecrets, renewSecrets, type Secrets } from "./secrets.ts";
export {
  clientUrls,
  dataDirOf,
  type PlatformSettings,
  type RuntimeName,
  readSettings,
  resolveSettings,
  type SettingOptions,
  serveEnvironment,
  type TlsSettings,
} from "./settings.ts";
export { deleteDataFolder, takeSetupLock, waitForSetupLock } from "./setup-lock.ts";
export { forgetVariable, type KeptSite, keptSite } from "./site-variables.ts";
export { type AcmeFiles, acmeFiles, type LocalTlsFiles, localTlsFiles, WAITING_NAME } from "./tls-files.ts";
