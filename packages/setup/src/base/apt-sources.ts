// The package archives that the base template is built from. The host's own archives come first, because they are known to be reachable
// from this host: a mirror, a proxy, an archive in a closed network.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface AptSource {
  readonly uri: string;
  readonly suite: string;
  readonly components: readonly string[];
  readonly signedBy: string | undefined;
}

/** All sources of binary packages in an /etc/apt directory, in both file formats. */
export async function readAptSources(etcApt: string): Promise<AptSource[]> {
  const sources = parseListFile(await readFile(join(etcApt, "sources.list"), "utf8").catch(() => ""));
  const dir = join(etcApt, "sources.list.d");
  for (const name of (await readdir(dir).catch(() => [])).sort()) {
    if (name.endsWith(".list")) sources.push(...parseListFile(await readFile(join(dir, name), "utf8")));
    if (name.endsWith(".sources")) sources.push(...parseDeb822(await readFile(join(dir, name), "utf8")));
  }
  return sources;
}

/** The sources of the distribution itself, without those of third parties. */
export function distributionSources(sources: readonly AptSource[], codename: string): AptSource[] {
  const suites = new Set([codename, `${codename}-updates`, `${codename}-security`]);
  const archive = /(\/(debian|ubuntu)(-security|-ports)?(\/\d{8}T\d{6}Z)?\/?|\/mirrors\/(debian|ubuntu)[^/]*\.list)$/;
  return sources.filter((source) => suites.has(source.suite) && source.components.includes("main") && archive.test(source.uri));
}

/** The same archives for another release of the same distribution, with the default key rings. */
export function otherRelease(sources: readonly AptSource[], codename: string, other: string): AptSource[] {
  return sources.map((source) => ({ ...source, suite: source.suite.replace(codename, other), signedBy: undefined }));
}

/** Formats one line of sources.list, which every version of mmdebstrap accepts as an argument. */
export function formatSource(source: AptSource, wantedComponents: readonly string[]): string {
  const components = wantedComponents.filter((component) => source.components.includes(component));
  const option = source.signedBy === undefined ? "" : `[signed-by=${source.signedBy}] `;
  return `deb ${option}${source.uri} ${source.suite} ${components.join(" ")}`;
}

export function parseListFile(text: string): AptSource[] {
  return text.split("\n").flatMap((line) => {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line);
    if (!match) return [];
    const signedBy = /\bsigned-by=(\S+)/i.exec(match[1] ?? "")?.[1];
    return [{ uri: match[2] ?? "", suite: match[3] ?? "", components: words(match[4]), signedBy }];
  });
}

export function parseDeb822(text: string): AptSource[] {
  const withoutComments = text.replace(/^#.*\n?/gm, "");
  return withoutComments.split(/\n\s*\n/).flatMap((stanza) => {
    const field = (name: string) => new RegExp(`^${name}:(.*(?:\\n[ \\t].*)*)`, "im").exec(stanza)?.[1]?.trim();
    if (!words(field("Types")).includes("deb") || /^no$/i.test(field("Enabled") ?? "")) return [];
    // A key inside the stanza does not fit on one line. apt uses its default key rings instead.
    const signedBy = field("Signed-By")?.startsWith("/") ? field("Signed-By") : undefined;
    return words(field("URIs")).flatMap((uri) =>
      words(field("Suites")).map((suite) => ({ uri, suite, components: words(field("Components")), signedBy })),
    );
  });
}

const words = (text: string | undefined): string[] => (text ?? "").split(/\s+/).filter((word) => word !== "");
