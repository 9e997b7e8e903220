import { access } from "node:fs/promises";
import { runCommand, SubprocessError } from "@skerry/base";
import { OperatorError } from "./operator-error.ts";
import type { Report } from "./steps.ts";
import { toolEnvironment } from "./tool-environment.ts";

/** What a running platform and its set-up use, and for what. */
export const PLATFORM_PACKAGES: Readonly<Record<string, string>> = {
  "ca-certificates": "TLS to registries and release servers",
  conntrack: "forgets the connections of ended sandboxes",
  curl: "downloads with the proxies and certificates of this machine",
  e2fsprogs: "mkfs.ext4: the disks of sandboxes",
  iproute2: "ip: network namespaces and interfaces of sandboxes",
  mmdebstrap: "makes the base template",
  mount: "mount and umount, which mmdebstrap uses",
  nftables: "nft: what sandboxes may reach",
  runc: "the runc runtime",
  skopeo: "pulls images from registries",
  tini: "says in a sandbox why a program could not be started",
  umoci: "unpacks images",
  "util-linux": "unshare, mount, setsid",
};

/** Needed by `./skerry test` on top. */
export const TEST_PACKAGES: Readonly<Record<string, string>> = {
  "busybox-static": "an image with nothing else in it",
  "debian-archive-keyring": "the template of the restore soak, which is Debian also on Ubuntu",
  git: "which files are the repository's own",
  postgresql: "the second database of the store and of split roles",
  procps: "ps: what processes there are, for tests",
  "python3-venv": "the SDK from PyPI",
};

export interface PackageOutcome {
  readonly present: number;
  readonly installed: readonly string[];
}

/** Installs those of the packages that are missing. Asks dpkg first, so that it costs nothing when all are there. */
export async function ensureDebianPackages(
  names: readonly string[],
  options: { report: Report; signal: AbortSignal },
): Promise<PackageOutcome> {
  const { report, signal } = options;
  const missing = await missingPackages(names);
  if (missing.length === 0) return { present: names.length, installed: [] };
  if (!(await exists("/usr/bin/apt-get"))) {
    throw new OperatorError(`these programs are missing, and there is no apt-get to install them with: ${missing.join(", ")}`, {
      exit: "unfit",
      mend: ["Install them with this system's package tool, then run this again."],
    });
  }
  const aptGet = (args: readonly string[]) =>
    runCommand("apt-get", ["-q", "-y", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3", ...args], {
      env: toolEnvironment({ DEBIAN_FRONTEND: "noninteractive", NEEDRESTART_MODE: "l" }),
      timeoutMs: 900_000,
      maxOutputBytes: 16 * 1024 * 1024,
      signal,
    });
  const install = () => aptGet(["install", "--no-install-recommends", ...missing]);
  try {
    report("reading the package lists");
    await aptGet(["update"]);
    report(`installing ${missing.join(", ")}`);
    await install();
  } catch (cause) {
    signal.throwIfAborted();
    throw new OperatorError(`Debian packages could not be installed: ${missing.join(", ")}`, {
      mend: [
        ...(cause instanceof SubprocessError ? lastLines(cause.stderr) : []),
        `Mend apt-get, or install them yourself: apt-get install ${missing.join(" ")}`,
      ],
      cause,
    });
  }
  return { present: names.length - missing.length, installed: missing };
}

/** Those of the names that are not fully installed here. */
export async function missingPackages(names: readonly string[]): Promise<string[]> {
  let listing = "";
  try {
    // Asked about names, dpkg-query fails when one of them is unknown: so ask about everything that is installed.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own placeholders.
    const format = "${binary:Package}\t${db:Status-Status}\n";
    listing = (await runCommand("dpkg-query", ["-W", "-f", format], { maxOutputBytes: 16 * 1024 * 1024 })).stdout;
  } catch {
    // No dpkg here: everything counts as missing.
  }
  const installed = new Set(
    listing
      .split("\n")
      .filter((line) => line.endsWith("\tinstalled"))
      .map((line) => (line.split("\t")[0] ?? "").replace(/:.*/, "")),
  );
  return names.filter((name) => !installed.has(name));
}

const lastLines = (text: string) => text.trim().split("\n").slice(-5);

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
