import { chmod, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";

/** The paths in a data folder. */
export interface DataFolder {
  readonly root: string;
  readonly secretsFile: string;
  /** A copy of the secrets. */
  readonly secretsBackupFile: string;
  /** The keys that encrypt teams' secrets in the database. */
  readonly encryptionKeysFile: string;
  readonly toolsFile: string;
  readonly settingsFile: string;
  /** The settings of the operator's site, which may contain passwords. */
  readonly siteFile: string;
  readonly pidFile: string;
  /** Every `serve` process of this folder holds a lock on it (operator/src/daemon/daemon-lock.privileged.ts). */
  readonly daemonLockFile: string;
  readonly lockFile: string;
  readonly logFile: string;
  readonly binDir: string;
  readonly agentDir: string;
  readonly agentFile: string;
  readonly layersDir: string;
  /** Uploads for builds. */
  readonly blobsDir: string;
  readonly templatesDir: string;
  readonly templateFile: string;
  /** The database, unless SKERRY_DATABASE_URL names another one. */
  readonly databaseFile: string;
  readonly workDir: string;
  readonly compileCacheDir: string;
  /** The data folder's own certificate authority (tls-files.ts). */
  readonly tlsDir: string;
  /** The node's own folder. Only functions of @skerry/node read or write below it. */
  readonly nodeDir: string;
  /** The folders of the nodes that build templates during a set-up, while they do. */
  readonly buildNodesDir: string;
}

export const DEFAULT_DATA_DIR = "/var/lib/skerry";

export function dataFolder(root: string): DataFolder {
  return {
    root,
    secretsFile: join(root, "secrets.json"),
    secretsBackupFile: join(root, "secrets.backup.json"),
    encryptionKeysFile: join(root, "encryption-keys"),
    toolsFile: join(root, "tools.json"),
    settingsFile: join(root, "settings.json"),
    siteFile: join(root, "site.json"),
    pidFile: join(root, "skerry.pid"),
    daemonLockFile: join(root, "serve.lock"),
    lockFile: join(root, "setup.lock"),
    logFile: join(root, "logs/skerry.log"),
    binDir: join(root, "bin"),
    agentDir: join(root, "agent"),
    agentFile: join(root, "agent/current.json"),
    layersDir: join(root, "layers"),
    blobsDir: join(root, "blobs"),
    templatesDir: join(root, "templates"),
    templateFile: join(root, "templates/base.json"),
    databaseFile: join(root, "skerry.db"),
    workDir: join(root, "work"),
    compileCacheDir: join(root, "compile-cache"),
    tlsDir: join(root, "tls"),
    nodeDir: join(root, "node"),
    buildNodesDir: join(root, "build-nodes"),
  };
}

/** Creates the folder. Its root is a real path: instance names and container configurations are derived from it. */
export async function createDataFolder(path: string): Promise<DataFolder> {
  await mkdir(path, { recursive: true, mode: 0o711 });
  const root = await realpath(path);
  // The mapped root of a sandbox must be able to traverse the folder, but not to list it.
  await chmod(root, 0o711);
  const folder = dataFolder(root);
  for (const dir of [folder.binDir, folder.agentDir, folder.layersDir, folder.templatesDir]) {
    await mkdir(dir, { recursive: true, mode: 0o711 });
  }
  await mkdir(join(root, "logs"), { recursive: true, mode: 0o750 });
  for (const dir of [folder.workDir, folder.compileCacheDir]) await mkdir(dir, { recursive: true, mode: 0o700 });
  return folder;
}
