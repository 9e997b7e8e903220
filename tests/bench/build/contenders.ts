// Skerry and its peers: each builds or unpacks once, as its command does for a person.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "@skerry/base";
import type { Platform } from "@skerry/testkit";
import { SkerryCommand, USER_ENV } from "@skerry/testkit/skerry-command";
import { timed } from "../statistics.ts";

const LIMIT_MS = 1_800_000;

/** Builds directories as images or templates. */
export interface Builder {
  readonly name: string;
  /** Milliseconds. `cold`: nothing of an earlier build may be used, the image is pulled again. */
  build(directory: string, options: { readonly cold: boolean }): Promise<number>;
}

export function skerryBuilder(platform: Platform, runtime: "gvisor" | "runc"): Builder {
  // `up` would have written the settings, from which the command knows the address of the API.
  const { api, edge } = platform.ports;
  const settings = { runtime, listen: "127.0.0.1", apiPort: api, edgePort: edge, domain: platform.domain };
  writeFileSync(join(platform.dataDir, "settings.json"), JSON.stringify(settings));
  return {
    name: `skerry on ${runtime}`,
    build: (directory, { cold }) => timed(() => buildTemplate(platform, { name: "bench", directory, flags: cold ? ["--no-cache"] : [] })),
  };
}

export async function buildTemplate(
  platform: Platform,
  options: { readonly name: string; readonly directory: string; readonly flags: readonly string[] },
): Promise<void> {
  const skerry = new SkerryCommand(platform.dataDir, { limitMs: LIMIT_MS });
  await skerry.run("templates", "build", options.name, options.directory, ...options.flags);
}

/** Debian's buildah, with runc and the host's network. It keeps a layer for each step (`--layers`). */
export async function openBuildah(dir: string): Promise<Builder> {
  await runCommand("apt-get", ["-q", "-y", "-o", "DPkg::Lock::Timeout=120", "install", "--no-install-recommends", "buildah"], {
    env: { ...USER_ENV, DEBIAN_FRONTEND: "noninteractive" },
    timeoutMs: LIMIT_MS,
  });
  const storage = ["--root", join(dir, "buildah"), "--runroot", join(dir, "buildah-run"), "--storage-driver", "overlay"];
  const flags = [
    "--layers",
    "--isolation",
    "oci",
    "--runtime",
    "/usr/sbin/runc",
    "--network",
    "host",
    "--tls-verify=false",
    "-q",
    "-t",
    "bench",
  ];
  return {
    name: "buildah bud --layers",
    async build(directory, { cold }) {
      if (cold) await runCommand("buildah", [...storage, "rmi", "--all", "--force"], { timeoutMs: LIMIT_MS });
      return timed(() => runCommand("buildah", [...storage, "bud", ...flags, directory], { timeoutMs: LIMIT_MS }));
    },
  };
}

/** `skopeo copy` into a layout, and `umoci unpack` of it. */
export async function copyAndUnpack(image: string, dir: string): Promise<number> {
  const [layout, bundle] = [join(dir, "layout"), join(dir, "bundle")];
  try {
    return await timed(async () => {
      await runCommand("skopeo", ["copy", "--quiet", "--src-tls-verify=false", `docker://${image}`, `oci:${layout}:1`], {
        timeoutMs: LIMIT_MS,
      });
      await runCommand("umoci", ["unpack", "--image", `${layout}:1`, bundle], { timeoutMs: LIMIT_MS });
    });
  } finally {
    for (const path of [layout, bundle]) rmSync(path, { recursive: true, force: true });
  }
}
