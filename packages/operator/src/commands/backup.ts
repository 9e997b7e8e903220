import { existsSync } from "node:fs";
import { mkdir, mkdtemp, open, readdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { clusterOfNode, copiedVolumesIn } from "@skerry/node/folder";
import {
  createDataFolder,
  type DataFolder,
  dataDirOf,
  dataFolder,
  forgetVariable,
  keptSite,
  OperatorError,
  readSettings,
  takeSetupLock,
} from "@skerry/setup/folder";
import { appendToArchive, createArchive, extractArchive } from "../backup/archive.ts";
import { type CopiedImages, copyImages } from "../backup/copy-images.ts";
import { type CopiedVolumes, copyVolumes } from "../backup/copy-volumes.ts";
import { placeVolumes } from "../backup/place-volumes.ts";
import type { OperatorContext } from "../context.ts";
import { findDaemon } from "../daemon/find-daemon.ts";
import { requireRoot } from "../require-root.ts";
import { createSteps } from "../terminal/steps.ts";
import { interruptible } from "./start-platform.ts";

/** Increases when an older `restore` could not read the archive. */
const FORMAT = 1;
const NOTE = "backup.json";
const DATABASE = "backup.database";

interface BackupNote {
  readonly format: number;
  readonly version: string;
  readonly createdAt: string;
  readonly database: "sqlite" | "postgres";
}

/** Files and folders of the data folder that never change while they exist, or that one process replaces as a whole. */
const KEPT = ["secrets.json", "secrets.backup.json", "encryption-keys", "site.json", "bin", "agent", "templates", "tls", "blobs"];
/** Of the layer store, everything but what is being made or removed. */
const PASSING_LAYERS: ReadonlySet<string> = new Set(["locks", "staging", "trash", "holds"]);

/** Writes the platform's data to a file, while the platform runs. */
export async function backup(context: OperatorContext, file: string, options: { readonly data?: string }): Promise<void> {
  requireRoot("backup");
  const folder = dataFolder(await realpath(dataDirOf(options.data, context.env)));
  if (!(await readSettings(folder))) throw new OperatorError(`there is no platform in ${folder.root}`);
  const target = resolve(file);
  if (existsSync(target)) throw new OperatorError(`${target} exists already`, { hints: ["Name a new file."] });
  if (`${target}/`.startsWith(`${folder.root}/`)) throw new OperatorError("a backup inside the data folder would be lost with it");
  await using _lock = await takeSetupLock(join(folder.root, "backup.lock"));
  const partial = `${target}.partial`;
  try {
    const copied = await interruptible((signal) => write({ context, folder, archive: partial, signal }));
    await rename(partial, target);
    describe(target, copied);
  } finally {
    await rm(partial, { force: true });
  }
}

interface Copied {
  readonly images: CopiedImages;
  readonly volumes: CopiedVolumes;
}

interface Writing {
  readonly context: OperatorContext;
  readonly folder: DataFolder;
  readonly archive: string;
  readonly signal: AbortSignal;
}

async function write({ context, folder, archive, signal }: Writing): Promise<Copied> {
  const steps = createSteps();
  await mkdir(folder.workDir, { recursive: true });
  for (const name of await readdir(folder.workDir))
    if (name.startsWith("backup-")) await rm(join(folder.workDir, name), { recursive: true, force: true });
  const staging = await mkdtemp(join(folder.workDir, "backup-"));
  try {
    // First: what it knows is copied afterwards, or was deleted meanwhile.
    const { env } = await keptSite(folder, { ...context.env, SKERRY_DATA: folder.root });
    const database = await steps.run(
      "database",
      () => context.copyDatabase(env, join(staging, DATABASE)),
      (kind) => kind,
    );
    const cluster = relative(folder.root, clusterOfNode(folder.nodeDir).file);
    const kept = [...KEPT, cluster].filter((path) => existsSync(join(folder.root, path)));
    await steps.run(
      "keys and programs",
      () => createArchive(archive, folder.root, kept, signal),
      () => `${kept.length} files and folders`,
    );
    const layers = (await readdir(folder.layersDir)).filter((name) => !PASSING_LAYERS.has(name));
    await steps.run(
      "layers",
      () =>
        appendToArchive(
          archive,
          folder.root,
          layers.map((name) => `layers/${name}`),
          signal,
        ),
      () => `${layers.filter((name) => !name.endsWith(".json")).length}`,
    );
    const images = await steps.run(
      "images",
      (report) => copyImages({ folder, archive, staging, report, signal }),
      ({ paused, snapshots }) => `${paused} paused sandboxes, ${snapshots} snapshots`,
    );
    const volumes = await steps.run(
      "volumes",
      (report) => copyVolumes({ folder, archive, staging, report, signal }),
      ({ copied }) => `${copied}`,
    );
    const note: BackupNote = { format: FORMAT, version: context.version, createdAt: new Date().toISOString(), database };
    await writeFile(join(staging, NOTE), JSON.stringify(note));
    // Last: an archive without the note is not complete.
    await appendToArchive(archive, folder.root, ["settings.json"], signal);
    await appendToArchive(archive, staging, [DATABASE, NOTE], signal);
    await using written = await open(archive, "r+");
    await written.sync();
    return { images, volumes };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function describe(target: string, { images, volumes }: Copied): void {
  const lines = [
    `The backup is in ${target}. It contains keys: keep it as safe as the data folder.`,
    "Sandboxes that run are not in it: pause them, or take snapshots of them.",
  ];
  if (images.left.length > 0) {
    lines.push(`${images.left.length} images were used or deleted during their copy and are not in it: ${images.left.join(", ")}`);
  }
  if (volumes.left.length > 0) {
    lines.push(
      `${volumes.left.length} volumes were written to all the time and are not in it: ${volumes.left.join(", ")}`,
      "Pause the sandboxes that mount them, and take another backup.",
    );
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Puts a backup into an empty data folder. */
export async function restore(context: OperatorContext, file: string, options: { readonly data?: string }): Promise<void> {
  requireRoot("restore");
  const archive = resolve(file);
  if (!existsSync(archive)) throw new OperatorError(`${archive} does not exist`);
  const dataDir = resolve(dataDirOf(options.data, context.env));
  if (existsSync(dataDir) && (await readdir(dataDir)).length > 0) {
    throw new OperatorError(`${dataDir} is not empty`, { hints: ["Name another folder with --data, or run ./skerry down --purge first."] });
  }
  const folder = await createDataFolder(dataDir);
  if (await findDaemon(folder)) throw new OperatorError(`a platform is running in ${folder.root}`);
  await using _lock = await takeSetupLock(join(folder.root, "backup.lock"));
  const steps = createSteps();
  try {
    await interruptible(async (signal) => {
      await steps.run(
        "files",
        () => extractArchive(archive, folder.root, signal),
        () => folder.root,
      );
      const note = await readNote(folder);
      signal.throwIfAborted();
      await steps.run(
        "database",
        () => context.restoreDatabase({ ...context.env, SKERRY_DATA: folder.root }, join(folder.root, DATABASE)),
        () => note.database,
      );
      for (const name of [NOTE, DATABASE]) await rm(join(folder.root, name), { force: true });
      // Last, because what is placed elsewhere would stay there after a failure.
      const elsewhere = context.env.SKERRY_VOLUMES;
      await forgetVariable(folder, "SKERRY_VOLUMES");
      if (elsewhere && existsSync(copiedVolumesIn(folder.nodeDir)))
        await steps.run(
          "volumes",
          () => placeVolumes(folder, elsewhere, signal),
          (count) => `${count} in ${elsewhere}`,
        );
    });
  } catch (error) {
    for (const name of await readdir(folder.root)) await rm(join(folder.root, name), { recursive: true, force: true });
    throw error;
  }
  process.stdout.write(
    `Restored in ${folder.root}. Start the platform with ./skerry up or ./skerry install.\nSandboxes that ran at the time of the backup have ended; paused ones and snapshots are there.\n`,
  );
}

async function readNote(folder: DataFolder): Promise<BackupNote> {
  const text = await readFile(join(folder.root, NOTE), "utf8").catch(() => undefined);
  if (text === undefined) throw new OperatorError("the file is not a complete backup", { hints: ["Take another one."] });
  const note = JSON.parse(text) as BackupNote;
  if (note.format > FORMAT) throw new OperatorError(`the backup is of Skerry ${note.version}, which is newer than this one`);
  return note;
}
