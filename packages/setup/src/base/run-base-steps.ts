// The steps of templates/base/Dockerfile, carried out by the builder in sandboxes.

import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, copyFile, cp, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { hostArch, koffiAddon } from "@skerry/agent/assemble";
import { createLogger, runCommand, systemClock } from "@skerry/base";
import { openFolderBlobStore } from "@skerry/blobs";
import { type BuildLog, openStepCache, runBuild } from "@skerry/builder";
import type { LayerDigest } from "@skerry/layers";
import { BuildSpecSchema, type BuildStep, BuildStepSchema } from "@skerry/wire/node";
import { type PreparedStep, prepareSteps, readDockerfile, writeArchive } from "../build-directory/index.ts";
import type { BuildNode } from "../build-node.ts";
import { OperatorError } from "../operator-error.ts";
import type { Report } from "../steps.ts";
import type { Distribution } from "./distribution.ts";
import { BUILD_SIZE } from "./from-image.ts";
import { DEFINITION_DIR } from "./recipe.ts";

export interface BaseStepsOptions {
  readonly node: BuildNode;
  /** The files that the steps begin with. */
  readonly source: LayerDigest;
  readonly distribution: Distribution;
  /** Whether the source has the packages already. */
  readonly isComplete: boolean;
  readonly npmDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The certificate authorities of this host, with which an image that has none reaches a package archive. */
const HOST_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";
const MOST_KEPT_LINES = 10;

/** Returns the layers of the template, lowest first. They are in the store of the node. */
export async function runBaseSteps(options: BaseStepsOptions): Promise<readonly LayerDigest[]> {
  const { node, source, report, signal } = options;
  const directory = join(node.dir, "context");
  await rm(directory, { recursive: true, force: true });
  await writeContext(directory, options);
  const { build, path } = await readDockerfile({ directory, file: undefined, buildArgs: {} });
  const steps = await prepareSteps(build.steps, { directory, dockerfile: path });
  const blobs = await openFolderBlobStore(join(node.dir, "blobs"));
  const spec = create(BuildSpecSchema, {
    buildId: `base-${randomBytes(4).toString("hex")}`,
    templateId: "base",
    cacheScope: "base",
    source: { case: "template", value: { name: "base", layers: [source] } },
    steps: await Promise.all(steps.map((step) => withArchive(step, { dir: node.dir, put: (bytes) => blobs.put(bytes) }))),
    cpuCount: BUILD_SIZE.cpuCount,
    memoryMb: BUILD_SIZE.memoryMb,
    diskSizeMb: BUILD_SIZE.diskSizeMb,
    withoutDefaultUser: true,
  });
  const logger = createLogger({ name: "set-up", level: "error", fd: 2 });
  const cache = await openStepCache({ dir: join(node.dir, "cache"), layers: node.layers, keepMs: 86_400_000, clock: systemClock, logger });
  const said = new Said(steps, report);
  try {
    const { layers } = await runBuild(spec, { ...node, blobs, cache, images: { pullDir: node.dir }, log: said.add, signal });
    return layers;
  } catch (error) {
    signal.throwIfAborted();
    throw said.failure(error);
  }
}

async function withArchive(
  { type, args, filesHash, files }: PreparedStep,
  { dir, put }: { readonly dir: string; put(bytes: AsyncIterable<Uint8Array>): Promise<string> },
): Promise<BuildStep> {
  if (files === undefined || filesHash === undefined) return create(BuildStepSchema, { type, args: [...args] });
  const file = join(dir, `${filesHash}.tar`);
  await writeArchive(files, file);
  const archive = await put(createReadStream(file));
  await rm(file);
  return create(BuildStepSchema, { type, args: [...args], filesHash, archive });
}

/** templates/base, and beside it what comes from this machine (see templates/base/README.md). */
async function writeContext(directory: string, { distribution, isComplete, npmDir }: BaseStepsOptions): Promise<void> {
  await cp(DEFINITION_DIR, directory, { recursive: true });
  const files = join(directory, "files");
  const place = async (path: string) => {
    await mkdir(dirname(join(files, path)), { recursive: true });
    return join(files, path);
  };
  await writeFile(await place("etc/apt/sources.list"), `${distribution.guestSources.join("\n")}\n`);
  // The addon through which reseed.cjs calls a function of OpenSSL that Node.js does not export.
  await copyFile(koffiAddon(hostArch()), await place("usr/local/lib/skerry/koffi.node"));
  // The platform's Node.js and npm: newer than the distribution's, with far fewer packages.
  await copyFile(process.execPath, await place("usr/local/bin/node"));
  await cp(npmDir, await place("usr/local/lib/node_modules/npm"), { recursive: true, dereference: true });
  // Paths of the host's keys do not exist in an image, so the image's own keys are used.
  const sources = isComplete ? [] : distribution.buildSources.map((line) => `${line.replace(/\[[^\]]*\] /, "")}\n`);
  await writeFile(join(directory, "build/archives"), sources.join(""));
  await writeFile(join(directory, "build/authorities"), "");
  const hasAuthorities = await access(HOST_AUTHORITIES).then(
    () => true,
    () => false,
  );
  if (hasAuthorities && !isComplete) await copyFile(HOST_AUTHORITIES, join(directory, "build/authorities"));
  // Not what the umask of a checkout has made of them.
  await runCommand("chmod", ["-R", "u=rwX,go=rX", "--", directory]);
}

/** What the build says: for the step that is shown, and for the reason of a failure. */
class Said {
  readonly #steps: readonly PreparedStep[];
  readonly #report: Report;
  #step = "";
  #lines: string[] = [];

  constructor(steps: readonly PreparedStep[], report: Report) {
    this.#steps = steps;
    this.#report = report;
  }

  readonly add: BuildLog = ({ step, message }) => {
    const output = /^\[[^\]]*\] \[(?:stdout|stderr)\]: (.*)$/s.exec(message)?.[1];
    if (step !== this.#step && step !== "") {
      this.#step = step;
      this.#lines = [];
      const number = Number(step);
      this.#report(Number.isNaN(number) ? "adding the defaults of every template" : `step ${number} of ${this.#steps.length}`);
    }
    if (output === undefined) return;
    this.#lines.push(output);
    if (this.#lines.length > MOST_KEPT_LINES) this.#lines.shift();
  };

  failure(cause: unknown): OperatorError {
    const line = this.#steps[Number(this.#step) - 1]?.line;
    const errors = this.#lines.filter((text) => text.startsWith("E: "));
    const why = errors.length > 0 ? errors.join(" ") : (this.#lines.at(-1) ?? (cause instanceof Error ? cause.message : String(cause)));
    const place = line === undefined ? "" : `: line ${line} of templates/base/Dockerfile`;
    return new OperatorError(`could not build the template${place}: ${why}`, { hints: this.#lines, cause });
  }
}
