// Writes tar archives byte by byte, so that a test can include what no tool writes: paths that leave the archive, links to any path.

export interface TarEntry {
  /** The path, exactly as it is written to the archive. */
  readonly path: string;
  /** Default: a directory when the path ends with a slash, otherwise a file. */
  readonly type?: "file" | "hard-link" | "symlink" | "character-device" | "block-device" | "directory" | "fifo";
  readonly content?: string | Uint8Array;
  /** Target of a symbolic or hard link. */
  readonly target?: string;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly mtimeSeconds?: number;
  /** Major and minor number of a device. */
  readonly device?: readonly [number, number];
  readonly xattrs?: Readonly<Record<string, string>>;
}

const TYPE_FLAGS = {
  file: "0",
  "hard-link": "1",
  symlink: "2",
  "character-device": "3",
  "block-device": "4",
  directory: "5",
  fifo: "6",
} as const;
const BLOCK = 512;

export function tarArchive(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(writeEntry), Buffer.alloc(2 * BLOCK)]);
}

function writeEntry(entry: TarEntry): Buffer[] {
  const records = Object.entries(entry.xattrs ?? {}).map(([name, value]) => paxRecord(`SCHILY.xattr.${name}`, value));
  const pax = Buffer.concat(records);
  const extended = records.length === 0 ? [] : [header({ path: "pax", mode: 0o644 }, "x", pax.length), padded(pax)];
  const type = entry.type ?? (entry.path.endsWith("/") ? "directory" : "file");
  const content = Buffer.from(entry.content ?? "");
  return [...extended, header(entry, TYPE_FLAGS[type], content.length), padded(content)];
}

function header(entry: TarEntry, typeFlag: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const text = (value: string, offset: number, length: number) => {
    if (Buffer.byteLength(value) > length) throw new Error(`too long for a tar header: ${value}`);
    block.write(value, offset);
  };
  const octal = (value: number, offset: number, length: number) => text(value.toString(8).padStart(length - 1, "0"), offset, length - 1);
  text(entry.path, 0, 100);
  octal(entry.mode ?? (typeFlag === "5" ? 0o755 : 0o644), 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(entry.gid ?? 0, 116, 8);
  octal(size, 124, 12);
  octal(entry.mtimeSeconds ?? 1_700_000_000, 136, 12);
  text(typeFlag, 156, 1);
  text(entry.target ?? "", 157, 100);
  text("ustar\u000000", 257, 8);
  octal(entry.device?.[0] ?? 0, 329, 8);
  octal(entry.device?.[1] ?? 0, 337, 8);
  // The checksum field counts as spaces in the checksum.
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  text(`${sum.toString(8).padStart(6, "0")}\0 `, 148, 8);
  return block;
}

/** "<length> <key>=<value>\n", where the length counts its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

const padded = (content: Buffer): Buffer => Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
