// Which packages bring what an image lacks, and the command that installs them.

/** What a template should have, with the reason. `essential`: a template without it is no use. */
export const WANTED: readonly { readonly program: string; readonly essential: boolean; readonly why: string }[] = [
  { program: "/bin/bash", essential: true, why: "every command runs in it" },
  { program: "sudo", essential: true, why: "the user is root without a password" },
  { program: "ca-certificates", essential: true, why: "TLS" },
  { program: "curl", essential: false, why: "downloads, and ready commands that wait for a URL" },
  { program: "ss", essential: false, why: "ready commands that wait for a port" },
  { program: "pgrep", essential: false, why: "ready commands that wait for a process" },
  { program: "git", essential: false, why: "repositories" },
];

export interface PackageManager {
  readonly program: string;
  /** Values of ID and ID_LIKE in /etc/os-release. */
  readonly family: readonly string[];
  /** A line for `sh -c`. */
  install(packages: readonly string[]): string;
  /** Where a package is not called like the program. */
  readonly names: Readonly<Record<string, string>>;
}

const RPM_NAMES = { ss: "iproute", pgrep: "procps-ng" };
const RPM_FAMILY = ["fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn"];

const MANAGERS: readonly PackageManager[] = [
  {
    program: "apt-get",
    family: ["debian", "ubuntu"],
    install: (packages) =>
      "export DEBIAN_FRONTEND=noninteractive; apt-get -q -o Acquire::Retries=3 update && " +
      `apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install ${packages.join(" ")} && ` +
      "apt-get clean && rm -rf /var/lib/apt/lists/*",
    names: { ss: "iproute2", pgrep: "procps" },
  },
  {
    program: "dnf",
    family: RPM_FAMILY,
    install: (packages) => `dnf -y -q --setopt=install_weak_deps=False install ${packages.join(" ")} && dnf -q clean all`,
    names: { ...RPM_NAMES, git: "git-core" },
  },
  {
    program: "microdnf",
    family: RPM_FAMILY,
    install: (packages) => `microdnf -y --setopt=install_weak_deps=0 install ${packages.join(" ")} && microdnf clean all`,
    names: { ...RPM_NAMES, git: "git-core" },
  },
  {
    program: "yum",
    family: RPM_FAMILY,
    install: (packages) => `yum -y -q install ${packages.join(" ")} && yum -q clean all`,
    names: RPM_NAMES,
  },
  {
    program: "apk",
    family: ["alpine"],
    install: (packages) => `apk add --no-cache ${packages.join(" ")}`,
    names: { ss: "iproute2", pgrep: "procps" },
  },
  {
    program: "pacman",
    family: ["arch", "archarm"],
    // A partial upgrade of Arch is not supported.
    install: (packages) => `pacman -Syu --noconfirm --needed ${packages.join(" ")} && rm -rf /var/cache/pacman/pkg/*`,
    names: { ss: "iproute2", pgrep: "procps-ng" },
  },
  {
    program: "zypper",
    family: ["suse", "opensuse"],
    install: (packages) => `zypper -n install --no-recommends ${packages.join(" ")} && zypper clean -a`,
    names: { ss: "iproute2", pgrep: "procps", git: "git-core" },
  },
];

/** Programs that the inspection of an image looks for. */
export const LOOKED_FOR: readonly string[] = [
  ...WANTED.map(({ program }) => program),
  "sh",
  "bash",
  ...MANAGERS.map(({ program }) => program),
];

/** That of the image's distribution, or else any that is there. */
export function choosePackageManager(osRelease: string, present: ReadonlySet<string>): PackageManager | undefined {
  // Without a shell, no package can run what it runs when it is installed.
  if (!present.has("sh")) return undefined;
  const words = new Set(releaseWords(osRelease));
  const there = MANAGERS.filter(({ program }) => present.has(program));
  return there.find(({ family }) => family.some((name) => words.has(name))) ?? there[0];
}

export function packagesFor(manager: PackageManager, programs: readonly string[]): string[] {
  return programs.map((program) => manager.names[program] ?? program.replace(/^.*\//, ""));
}

/** For the log. */
export function distributionOf(osRelease: string): string {
  return field(osRelease, "PRETTY_NAME") ?? field(osRelease, "ID") ?? "no known distribution";
}

function releaseWords(osRelease: string): string[] {
  return ["ID", "ID_LIKE"].flatMap((name) => (field(osRelease, name) ?? "").split(/\s+/));
}

function field(osRelease: string, name: string): string | undefined {
  const value = new RegExp(`^${name}=(.*)$`, "m").exec(osRelease)?.[1]?.trim();
  return value?.replace(/^(["'])(.*)\1$/, "$2").slice(0, 200) || undefined;
}
