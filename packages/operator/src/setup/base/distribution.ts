import { readFile } from "node:fs/promises";
import { OperatorError } from "../../operator-error.ts";
import { type AptSource, distributionSources, formatSource, readAptSources } from "./apt-sources.ts";

export interface Distribution {
  readonly id: "debian" | "ubuntu";
  readonly codename: string;
  /** What mmdebstrap is given: lines of sources.list that work from this machine. */
  readonly buildSources: readonly string[];
  /** What users find in the template's /etc/apt/sources.list: the public archives. */
  readonly guestSources: readonly string[];
}

const COMPONENTS = { debian: ["main"], ubuntu: ["main", "universe"] } as const;

/** The distribution of this machine, which the base template is made of as well. */
export async function detectDistribution(): Promise<Distribution> {
  const release = parseOsRelease(await readFile("/etc/os-release", "utf8"));
  const id = release.ID;
  const codename = release.VERSION_CODENAME ?? "";
  if ((id !== "debian" && id !== "ubuntu") || !/^[a-z]+$/.test(codename)) {
    throw new OperatorError(`the base template can't be made on ${release.PRETTY_NAME ?? "this system"}`, {
      exit: "unfit",
      mend: ["Use Debian 12 or 13, or Ubuntu 22.04 or 24.04."],
    });
  }
  const guest = publicSources(id, codename);
  const own = distributionSources(await readAptSources("/etc/apt"), codename);
  const build = own.some((source) => source.suite === codename) ? own : guest;
  const format = (source: AptSource) => formatSource(source, COMPONENTS[id]);
  return { id, codename, buildSources: build.map(format), guestSources: guest.map(format) };
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
