import { expect, test } from "vitest";
import { distributionSources, formatSource, otherRelease, parseDeb822, parseListFile } from "./apt-sources.ts";

test("reads one-line sources, with options and without", () => {
  const text = `# deb http://old.example/debian bookworm main
deb http://a.example/debian bookworm main contrib # ours
deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg] https://b.example/debian-security bookworm-security main
deb-src http://a.example/debian bookworm main
`;
  expect(parseListFile(text)).toEqual([
    { uri: "http://a.example/debian", suite: "bookworm", components: ["main", "contrib"], signedBy: undefined },
    { uri: "https://b.example/debian-security", suite: "bookworm-security", components: ["main"], signedBy: "/usr/share/keyrings/x.gpg" },
  ]);
});

test("reads stanzas: several suites, comments, continued lines, disabled ones", () => {
  const text = `Types: deb deb-src
# a mirror: http://old.example
URIs: http://a.example/debian
Suites: trixie trixie-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://b.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb
URIs: http://c.example/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
`;
  const key = "/usr/share/keyrings/debian-archive-keyring.gpg";
  expect(parseDeb822(text)).toEqual([
    { uri: "http://a.example/debian", suite: "trixie", components: ["main", "contrib"], signedBy: key },
    { uri: "http://a.example/debian", suite: "trixie-updates", components: ["main", "contrib"], signedBy: key },
    { uri: "http://c.example/debian", suite: "trixie", components: ["main"], signedBy: undefined },
  ]);
});

test("third parties' sources are left out", () => {
  const source = (uri: string, suite: string, components = ["main"]) => ({ uri, suite, components, signedBy: undefined });
  const own = [
    source("http://deb.example/debian", "bookworm"),
    source("http://deb.example/debian-security/", "bookworm-security"),
    source("mirror+file:///etc/apt/mirrors/debian.list", "bookworm"),
    source("http://snapshot.example/archive/debian/20260501T000000Z/", "bookworm"),
  ];
  const others = [
    source("http://deb.example/debian", "sid"),
    source("http://deb.example/debian", "bookworm", ["contrib"]),
    source("https://download.example/linux/debian", "bookworm", ["stable"]),
    source("https://apt.example/postgresql", "bookworm-pgdg"),
    source("https://apt.example/tool", "bookworm"),
  ];
  expect(distributionSources([...own, ...others], "bookworm")).toEqual(own);
});

test("writes a source as one line", () => {
  const source = { uri: "http://a.example/ubuntu", suite: "noble", components: ["main", "restricted", "universe"], signedBy: "/k.gpg" };
  expect(formatSource(source, ["main", "universe"])).toBe("deb [signed-by=/k.gpg] http://a.example/ubuntu noble main universe");
});

test("a mirror's other releases are in the same places", () => {
  const source = (uri: string, suite: string) => ({ uri, suite, components: ["main"], signedBy: "/usr/share/keyrings/x.gpg" });
  const own = [source("http://a.example/debian", "trixie"), source("http://a.example/debian-security", "trixie-security")];
  expect(otherRelease(own, "trixie", "bookworm").map((found) => formatSource(found, ["main"]))).toEqual([
    "deb http://a.example/debian bookworm main",
    "deb http://a.example/debian-security bookworm-security main",
  ]);
});
