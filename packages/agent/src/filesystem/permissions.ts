// The mode as text in Go's form, which clients show and which differs from that of ls. Letters for special kinds come first and add up
// ("dt" for a sticky directory, "ug" for setuid and setgid). The plain rwx bits follow.

const S_IFMT = 0o170000;

const KINDS: ReadonlyMap<number, string> = new Map([
  [0o040000, "d"],
  [0o120000, "L"],
  [0o060000, "D"],
  [0o010000, "p"],
  [0o140000, "S"],
  [0o020000, "Dc"],
]);

/** Cache by mode: there are few modes, and the files of a large directory often share one. */
const KNOWN = new Map<number, string>();

export function permissionString(mode: number): string {
  const known = KNOWN.get(mode) ?? describe(mode);
  KNOWN.set(mode, known);
  return known;
}

function describe(mode: number): string {
  const kind = KINDS.get(mode & S_IFMT) ?? "";
  // Go's fixed order of the letters: d L D p S u g c t.
  const [device, character] = kind === "Dc" ? ["D", "c"] : [kind, ""];
  const setuid = mode & 0o4000 ? "u" : "";
  const setgid = mode & 0o2000 ? "g" : "";
  const sticky = mode & 0o1000 ? "t" : "";
  const prefix = device + setuid + setgid + character + sticky;
  const bits = [..."rwxrwxrwx"].map((letter, index) => (mode & (0o400 >> index) ? letter : "-")).join("");
  return (prefix === "" ? "-" : prefix) + bits;
}
