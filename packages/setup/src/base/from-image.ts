import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { AGENT_ROOT, nodeArguments } from "@skerry/agent";
import { Secret } from "@skerry/base";
import { describeOciImage, type LayerDigest, type OciImageReference, pullOciImage, resolveOciImage, unpackOciImage } from "@skerry/layers";
import type { BuildNode } from "../build-node.ts";
import type { Report } from "../steps.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { type Distribution, findDistribution, parseOsRelease } from "./distribution.ts";

export interface ImageOrigin {
  readonly from: "image";
  readonly reference: string;
  readonly digest: string;
}

export interface ImageLayer {
  readonly layer: LayerDigest;
  readonly origin: ImageOrigin;
  readonly distribution: Distribution;
}

interface ImageOptions {
  readonly node: BuildNode;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Holds the layer that the steps begin with, until the build holds it. */
export const SOURCE_HOLDER = "base-source";
const READ_TIMEOUT_MS = 60_000;
const MAX_RELEASE_LENGTH = 20_000;

/** Pulls an OCI image of Debian or Ubuntu. */
export async function layerFromImage(image: OciImageReference, { node, report, signal }: ImageOptions): Promise<ImageLayer> {
  const dir = await mkdtemp(join(node.dir, "pull-"));
  const target = await node.layers.stagingDir();
  try {
    report("pulling the image");
    const access = { dir, registries: { hostCredentials: true, env: new Secret(toolEnvironment()) }, signal };
    const pulled = await pullOciImage(await describeOciImage(await resolveOciImage(image, access), access), access);
    report("unpacking the image");
    await unpackOciImage(pulled, { target, signal });
    const layer = await node.layers.adopt(target, { holder: SOURCE_HOLDER });
    const distribution = await distributionOf(layer, pulled.reference, { node, signal });
    return { layer, distribution, origin: { from: "image", reference: pulled.reference, digest: pulled.digest } };
  } finally {
    await node.layers.discard(target);
    await rm(dir, { recursive: true, force: true });
  }
}

async function distributionOf(
  layer: LayerDigest,
  reference: string,
  options: Pick<ImageOptions, "node" | "signal">,
): Promise<Distribution> {
  const text = await readRelease(layer, options).catch((cause: unknown) => {
    options.signal.throwIfAborted();
    throw new Error(`no sandbox can be started from image ${reference}: the base template needs Debian or Ubuntu`, { cause });
  });
  const release = parseOsRelease(text);
  const distribution = await findDistribution(release);
  if (distribution) return distribution;
  const found = release.PRETTY_NAME ?? release.ID ?? "nothing known";
  throw new Error(`image ${reference} has ${found} in it: the base template needs Debian or Ubuntu`);
}

/** Read in a sandbox, where a link of the image leads nowhere else, by the agent's own Node.js. "" when there is no such file. */
async function readRelease(layer: LayerDigest, { node, signal }: Pick<ImageOptions, "node" | "signal">): Promise<string> {
  const program = 'try { process.stdout.write(require("node:fs").readFileSync("/etc/os-release")) } catch {}';
  const sandbox = await node.host.startSandbox({
    buildId: "os-release",
    templateId: "base",
    layers: [layer],
    size: BUILD_SIZE,
    runtime: "",
    signal,
  });
  try {
    const lines: string[] = [];
    let length = 0;
    await sandbox.run({
      argv: [...nodeArguments(process.arch === "arm64" ? "arm64" : "x64", AGENT_ROOT), "--eval", program],
      user: "root",
      workdir: "/",
      env: {},
      timeoutMs: READ_TIMEOUT_MS,
      signal,
      onLine(line, stream) {
        length += line.length;
        if (stream === "stdout" && length < MAX_RELEASE_LENGTH) lines.push(line);
      },
    });
    return lines.join("\n");
  } finally {
    await sandbox.discard();
  }
}

/** Of the sandboxes that the base template is built in. */
export const BUILD_SIZE = { cpuCount: 2, memoryMb: 1024, diskSizeMb: 10_240 };
