import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { LayerDigest } from "@skerry/layers";
import type { BuildNode } from "../build-node.ts";
import { OperatorError } from "../operator-error.ts";
import { toolEnvironment } from "../tool-environment.ts";
import { aptTransportOptions } from "./apt-options.ts";
import type { Distribution } from "./distribution.ts";
import { SOURCE_HOLDER } from "./from-image.ts";
import { BASE_PACKAGES, LEFT_OUT } from "./recipe.ts";

/** Packages to install, and paths to leave out. Hooks are shell commands that run after the essential packages, with the target as `$1`. */
export interface ArchiveSelection {
  readonly packages: readonly string[];
  readonly leftOut: readonly string[];
  readonly hooks?: readonly string[];
}

export const BASE_SELECTION: ArchiveSelection = { packages: Object.keys(BASE_PACKAGES), leftOut: LEFT_OUT };

/** mmdebstrap's copies of the host's settings, which may contain a proxy's password. */
const FROM_HOST = ["etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap"];

/** A layer with a distribution and packages from its archives. */
export async function layerFromArchive(options: {
  readonly node: BuildNode;
  readonly distribution: Distribution;
  readonly selection: ArchiveSelection;
  readonly signal: AbortSignal;
}): Promise<LayerDigest> {
  const { node, ...rest } = options;
  const target = await node.layers.stagingDir();
  try {
    await fill({ ...rest, target, dir: node.dir });
    for (const path of FROM_HOST) await rm(join(target, path), { force: true });
    return await node.layers.adopt(target, { holder: SOURCE_HOLDER });
  } catch (error) {
    await node.layers.discard(target);
    throw error;
  }
}

async function fill(options: {
  readonly target: string;
  readonly dir: string;
  readonly distribution: Distribution;
  readonly selection: ArchiveSelection;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { target, dir, distribution, signal, selection } = options;
  // Passed in a file, because proxy settings may contain a password.
  const aptFile = join(dir, "mmdebstrap.conf");
  await writeFile(aptFile, `${['Acquire::Retries "3";', ...(await aptTransportOptions())].join("\n")}\n`, { mode: 0o600 });
  const args = ["--variant=minbase", "--mode=root", "--format=directory", `--include=${selection.packages.join(",")}`];
  for (const pattern of selection.leftOut) args.push(`--dpkgopt=path-exclude=${pattern}`);
  for (const hook of selection.hooks ?? []) args.push(`--essential-hook=${hook}`);
  try {
    await runCommand("mmdebstrap", [...args, `--aptopt=${aptFile}`, distribution.codename, target, ...distribution.buildSources], {
      env: toolEnvironment({ DEBIAN_FRONTEND: "noninteractive" }),
      timeoutMs: 900_000,
      maxOutputBytes: 16 * 1024 * 1024,
      signal,
    });
  } catch (cause) {
    // A killed mmdebstrap may leave these mounted. The caller must not delete through them.
    await runCommand("umount", ["--recursive", ...["proc", "sys", "dev"].map((name) => join(target, name))]).catch(() => {});
    signal.throwIfAborted();
    throw new OperatorError("could not build the template: mmdebstrap failed", {
      hints: [
        ...String(cause instanceof Error ? cause.message : cause)
          .split("\n")
          .slice(-10),
        "Check that apt-get update works. The template is built from the archives in /etc/apt.",
      ],
      cause,
    });
  }
}
