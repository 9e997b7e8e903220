import { access } from "node:fs/promises";
import { runCommand, SubprocessError } from "@skerry/base";
import { OperatorError } from "./operator-error.ts";
import type { Report } from "./steps.ts";
import { toolEnvironment } from "./tool-environment.ts";

/** Packages that the platform and its set-up need, with their use. */
export const PLATFORM_PACKAGES: Readonly<Record<string, string>> = {
  "bash-static": "the shell of images that have none",
  "busybox-static": "the programs of images that have none",
  "ca-certificates": "TLS to registries and release servers",
  conntrack: "removes the tracked connections of killed sandboxes",
  curl: "downloads, with the proxies and certificates of this host",
  e2fsprogs: "mkfs.ext4: the disks of sandboxes",
  iproute2: "ip: network namespaces and interfaces of sandboxes",
  mmdebstrap: "builds the base template",
  mount: "mount and umount, which mmdebstrap uses",
  nftables: "nft: the firewall of sandboxes",
  openssl: "makes the certificates of ./skerry up --tls",
  runc: "the runc runtime",
  skopeo: "pulls images from registries",
  tini: "reports in a sandbox why a program could not be started",
  "util-linux": "unshare, mount, setsid",
};

/** Further packages that `./skerry test` needs. */
export const TEST_PACKAGES: Readonly<Record<string, string>> = {
  "debian-archive-keyring": "the template of the restore soak, which is Debian on every host",
  git: "lists the files of the repository",
  pebble: "an ACME authority and a DNS server, for the certificates of the TLS listener",
  postgresql: "the second database of the store and of split roles",
  procps: "ps",
  "python3-venv": "a virtual environment for the Python SDK",
};

export interface PackageOutcome {
  readonly present: number;
  readonly installed: readonly string[];
}

/** Installs missing packages. Calls apt-get only if dpkg lists any as missing. */
export async function ensureDebianPackages(
  names: readonly string[],
  options: { report: Report; signal: AbortSignal },
): Promise<PackageOutcome> {
  const { report, signal } = options;
  const missing = await missingPackages(names);
  if (missing.length === 0) return { present: names.length, installed: [] };
  if (!(await exists("/usr/bin/apt-get"))) {
    throw new OperatorError(`missing programs, and no apt-get to install them: ${missing.join(", ")}`, {
      exit: "unfit",
      hints: ["Install them with the package manager of this system, then run this command again."],
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
    throw new OperatorError(`could not install Debian packages: ${missing.join(", ")}`, {
      hints: [
        ...(cause instanceof SubprocessError ? lastLines(cause.stderr) : []),
        `Fix the problem with apt-get, or install them yourself: apt-get install ${missing.join(" ")}`,
      ],
      cause,
    });
  }
  return { present: names.length - missing.length, installed: missing };
}

/** The packages of the list that are not completely installed. */
export async function missingPackages(names: readonly string[]): Promise<string[]> {
  let listing = "";
  try {
    // dpkg-query fails if one of the names is unknown, so list every installed package.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own placeholders.
    const format = "${binary:Package}\t${db:Status-Status}\n";
    listing = (await runCommand("dpkg-query", ["-W", "-f", format], { maxOutputBytes: 16 * 1024 * 1024 })).stdout;
  } catch {
    // Without dpkg, every package counts as missing.
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
