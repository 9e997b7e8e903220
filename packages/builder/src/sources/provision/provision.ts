// Provisioning: what an image lacks to be a template's base, as one layer above it. The work happens in a sandbox. Packages come from the
// image's own distribution; an image without a package manager gets programs that this machine brings.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { nodeArguments } from "@skerry/agent";
import type { LayerDigest } from "@skerry/layers";
import { BuildFailure } from "../../build-failure.ts";
import type { BuildSandbox } from "../../build-host.ts";
import { keyOf } from "../../keys.ts";
import type { SourceOptions } from "../source.ts";
import type { Finished, FinishRequest, Inspection, InspectRequest } from "./guest.ts";
import { choosePackageManager, distributionOf, LOOKED_FOR, packagesFor, WANTED } from "./packages.ts";
import { type StaticTools, staticTools } from "./static-tools.privileged.ts";

/** Increment it when provisioning changes in a way that the files below do not show. */
const REVISION = 1;
const GUEST_PROGRAM = new URL("./guest.ts", import.meta.url);
const GUEST_TIMEOUT_MS = 60_000;
const INSTALL_TIMEOUT_MS = 600_000;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Lines of a failed installation that the reason of the build has. */
const TAIL_LINES = 30;
const STEP = "base";

/** Identifies what provisioning does to an image. `tools`: with the programs of this machine. */
export async function provisionVersion(options: { readonly tools: boolean }): Promise<string> {
  const files = ["./guest.ts", "./packages.ts", "./provision.ts"].map((name) => readFileSync(new URL(name, import.meta.url)));
  const digests = files.map((file) => createHash("sha256").update(file).digest("hex"));
  return keyOf("provision", REVISION, digests, options.tools ? (await staticTools()).digest : null);
}

export interface Provisioned {
  /** Undefined: the image has everything. */
  readonly layer: LayerDigest | undefined;
  /** Whether programs of this machine are in the layer. */
  readonly usedTools: boolean;
  /** False when something could not be installed that another build may be able to install. */
  readonly complete: boolean;
}

export async function provision(image: LayerDigest, imagePath: string, options: SourceOptions): Promise<Provisioned> {
  const inspection = await inSandbox([image], options, async (sandbox) => {
    const found = await runGuest<InspectRequest, Inspection>(sandbox, { task: "inspect", programs: LOOKED_FOR }, options);
    const present = new Set(found.present);
    options.log({ level: "debug", step: STEP, message: `The image is ${distributionOf(found.osRelease)}` });
    if (!present.has("bash") && choosePackageManager(found.osRelease, present) === undefined) return undefined;
    const complete = await installMissing(sandbox, found, options);
    await runGuest<FinishRequest, Finished>(sandbox, { task: "finish", imagePath }, options);
    return { layer: await sandbox.commit(options.holder), usedTools: false, complete };
  });
  return inspection ?? (await provisionWithTools(image, imagePath, options));
}

/** For an image without bash and without a package manager: distroless, or from scratch. */
async function provisionWithTools(image: LayerDigest, imagePath: string, options: SourceOptions): Promise<Provisioned> {
  const tools = await staticTools();
  const layer = await toolsLayer(tools, options);
  return await inSandbox([image, layer], options, async (sandbox) => {
    const request: FinishRequest = { task: "finish", imagePath, tools: { dir: tools.dir, applets: tools.applets } };
    const { provided } = await runGuest<FinishRequest, Finished>(sandbox, request, options);
    const { present } = await runGuest<InspectRequest, Inspection>(sandbox, { task: "inspect", programs: LOOKED_FOR }, options);
    options.log({ level: "info", step: STEP, message: `The image has no package manager. Added: ${provided.join(", ")}` });
    reportMissing(new Set(present), options);
    return { layer: await sandbox.commit(options.holder), usedTools: true, complete: true };
  });
}

async function toolsLayer(tools: StaticTools, { layers, holder }: SourceOptions): Promise<LayerDigest> {
  const staged = await layers.stagingDir();
  try {
    await tools.write(staged);
    return await layers.adopt(staged, { holder });
  } catch (error) {
    await layers.discard(staged);
    throw error;
  }
}

async function inSandbox<T>(
  layers: readonly LayerDigest[],
  { buildId, templateId, host, size, runtime, signal }: SourceOptions,
  work: (sandbox: BuildSandbox) => Promise<T>,
): Promise<T> {
  const sandbox = await host.startSandbox({ buildId, templateId, layers, size, runtime, signal });
  try {
    return await work(sandbox);
  } finally {
    await sandbox.discard();
  }
}

/** Returns whether all that is wanted is there. */
async function installMissing(sandbox: BuildSandbox, found: Inspection, options: SourceOptions): Promise<boolean> {
  const present = new Set(found.present);
  const missing = WANTED.filter(({ program }) => !present.has(program));
  if (missing.length === 0) return true;
  const manager = choosePackageManager(found.osRelease, present);
  if (!manager) {
    reportMissing(present, options);
    return true;
  }
  const packages = packagesFor(
    manager,
    missing.map(({ program }) => program),
  );
  options.log({ level: "info", step: STEP, message: `Installing ${packages.join(", ")} with ${manager.program}` });
  const tail: string[] = [];
  const { exitCode, status } = await sandbox.run({
    argv: ["/bin/sh", "-c", manager.install(packages)],
    user: "root",
    workdir: "/",
    env: { PATH: SYSTEM_PATH, HOME: "/root" },
    timeoutMs: INSTALL_TIMEOUT_MS,
    signal: options.signal,
    onLine(line) {
      if (line.trim() === "") return;
      options.log({ level: "debug", step: STEP, message: line });
      tail.push(line);
      if (tail.length > TAIL_LINES) tail.shift();
    },
  });
  if (exitCode === 0) return true;
  if (missing.some(({ essential }) => essential)) {
    const lines = [`error waiting for provisioning sandbox: ${status}; provisioning output tail:`, ...tail];
    throw new BuildFailure(lines.join("\n"), { step: STEP });
  }
  options.log({ level: "warn", step: STEP, message: `The installation failed (${status}). The next build tries it again.` });
  reportMissing(present, options);
  return false;
}

function reportMissing(present: ReadonlySet<string>, { log }: SourceOptions): void {
  for (const { program, why } of WANTED) {
    if (!present.has(program)) log({ level: "warn", step: STEP, message: `The image has no ${program}: ${why}` });
  }
}

/** Runs the guest program with the agent's own Node.js, which needs nothing of the image. */
async function runGuest<Request extends { readonly task: string }, Answer>(
  sandbox: BuildSandbox,
  request: Request,
  { signal }: SourceOptions,
): Promise<Answer> {
  const node = nodeArguments(process.arch === "arm64" ? "arm64" : "x64", "/.skerry");
  const lines: string[] = [];
  const errors: string[] = [];
  const { exitCode, status } = await sandbox.run({
    argv: [
      ...node,
      "--no-warnings",
      "--input-type=module-typescript",
      "--eval",
      readFileSync(GUEST_PROGRAM, "utf8"),
      JSON.stringify(request),
    ],
    user: "root",
    workdir: "/",
    env: {},
    timeoutMs: GUEST_TIMEOUT_MS,
    signal,
    onLine: (line, stream) => void (stream === "stdout" ? lines : errors).push(line),
  });
  const answer = lines.at(-1);
  if (exitCode === 0 && answer !== undefined) return JSON.parse(answer) as Answer;
  const said = errors.slice(-TAIL_LINES).join("\n");
  throw new BuildFailure(`error waiting for provisioning sandbox: ${status}; provisioning output tail:\n${said}`, { step: STEP });
}
