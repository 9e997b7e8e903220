import { readFile } from "node:fs/promises";
import { OperatorError } from "../operator-error.ts";
import { type AptSource, distributionSources, formatSource, otherRelease, readAptSources } from "./apt-sources.ts";

export interface Distribution {
  readonly id: "debian" | "ubuntu";
  readonly codename: string;
  /** Sources for the build: lines of sources.list that work on this host. */
  readonly buildSources: readonly string[];
  /** Sources in the template's /etc/apt/sources.list: the public archives. */
  readonly guestSources: readonly string[];
}

type OsRelease = Readonly<Record<string, string>>;

const COMPONENTS = { debian: ["main"], ubuntu: ["main", "universe"] } as const;

export const readOwnOsRelease = async (): Promise<OsRelease> => parseOsRelease(await readFile("/etc/os-release", "utf8"));

/** The package sources of a release. Undefined for an unknown distribution. */
export async function findDistribution(release: OsRelease): Promise<Distribution | undefined> {
  const id = release.ID;
  const codename = release.VERSION_CODENAME ?? "";
  if ((id !== "debian" && id !== "ubuntu") || !/^[a-z]+$/.test(codename)) return undefined;
  const guest = publicSources(id, codename);
  const own = await readAptSources("/etc/apt");
  const build = [distributionSources(own, codename), await ofThisMachinesMirror(own, id, codename), guest].find((sources) =>
    sources.some((source) => source.suite === codename),
  );
  const format = (source: AptSource) => formatSource(source, COMPONENTS[id]);
  return { id, codename, buildSources: (build ?? guest).map(format), guestSources: guest.map(format) };
}

/** The distribution of this host. Throws OperatorError if it is unknown. */
export async function detectDistribution(): Promise<Distribution> {
  const release = await readOwnOsRelease();
  const distribution = await findDistribution(release);
  if (distribution) return distribution;
  throw new OperatorError(`the base template can't be built on ${release.PRETTY_NAME ?? "this system"}`, {
    exit: "unfit",
    hints: ["Use Debian 12 or 13, or Ubuntu 22.04 or 24.04.", "Or build it from an OCI image: SKERRY_BASE_IMAGE=<reference> ./skerry up"],
  });
}

/** Sources of the release on the host's mirror: a mirror of one release also has the others. */
async function ofThisMachinesMirror(own: readonly AptSource[], id: string, codename: string): Promise<AptSource[]> {
  const release = await readOwnOsRelease();
  if (release.ID !== id || release.VERSION_CODENAME === undefined) return [];
  return otherRelease(distributionSources(own, release.VERSION_CODENAME), release.VERSION_CODENAME, codename);
}

function publicSources(id: "debian" | "ubuntu", codename: string): AptSource[] {
  const components = COMPONENTS[id];
  const ports = process.arch !== "x64";
  const main =
    id === "debian" ? "http://deb.debian.org/debian" : ports ? "http://ports.ubuntu.com/ubuntu-ports" : "http://archive.ubuntu.com/ubuntu";
  const security = id === "debian" ? "http://deb.debian.org/debian-security" : ports ? main : "http://security.ubuntu.com/ubuntu";
  const source = (uri: string, suite: string): AptSource => ({ uri, suite, components, signedBy: undefined });
  return [source(main, codename), source(main, `${codename}-updates`), source(security, `${codename}-security`)];
}

export function parseOsRelease(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const match = /^([A-Z_]+)=(.*)$/.exec(line);
      return match ? [[match[1] ?? "", (match[2] ?? "").replace(/^(["'])(.*)\1$/, "$2")]] : [];
    }),
  );
}
