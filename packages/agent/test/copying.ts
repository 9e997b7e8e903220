// Archives for tests of the COPY step, written by hand: real programs refuse to make the hostile ones.

import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import type { AgentUnderTest } from "./agent-under-test.ts";

export interface TarEntry {
  readonly name: string | Buffer;
  /** A tar type, "0" by default. */
  readonly type?: string;
  readonly content?: string | Uint8Array;
  readonly link?: string;
  readonly mode?: number;
  readonly mtime?: number;
  /** The size that the header states, when it is not that of the content. */
  readonly size?: number;
  /** Changes the header before its checksum is computed. */
  readonly edit?: (header: Buffer) => void;
}

const BLOCK = 512;

export function tarOf(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.map(tarEntry), Buffer.alloc(2 * BLOCK)]);
}

export function tarEntry({ name, type = "0", content = "", link = "", mode = 0o644, mtime = 0, size, edit }: TarEntry): Buffer {
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(BLOCK);
  header.set(Buffer.from(name).subarray(0, 100), 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(1234, 7), 108);
  header.write(octal(1234, 7), 116);
  header.write(octal(size ?? bytes.length, 11), 124);
  header.write(octal(mtime, 11), 136);
  header.write(type, 156, "latin1");
  header.write(link.slice(0, 100), 157);
  header.write("ustar\x0000", 257, "latin1");
  edit?.(header);
  header.fill(" ", 148, 156);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
    "latin1",
  );
  return Buffer.concat([header, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]);
}

export function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** An extended header for the next entry. */
export function paxEntry(records: Readonly<Record<string, string>>): TarEntry {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = Buffer.byteLength(` ${key}=${value}\n`);
    let length = rest + 1;
    while (rest + String(length).length !== length) length = rest + String(length).length;
    return `${length} ${key}=${value}\n`;
  });
  return { name: "pax", type: "x", content: lines.join("") };
}

export interface CopyParameters {
  readonly source?: string;
  readonly destination: string;
  readonly workdir?: string;
  readonly user?: string;
  readonly owner?: string;
  readonly mode?: string;
}

export interface CopyAnswer {
  readonly status: number;
  readonly body: { readonly entries?: number; readonly warnings?: readonly string[]; readonly message?: string };
}

export async function copyTo(
  agent: AgentUnderTest,
  archive: NonNullable<RequestInit["body"]>,
  parameters: CopyParameters,
): Promise<CopyAnswer> {
  const query = new URLSearchParams({ source: ".", user: "root", ...parameters });
  const response = await agent.fetch(`/copy?${query}`, { method: "POST", body: archive, duplex: "half" } as RequestInit);
  return { status: response.status, body: (await response.json()) as CopyAnswer["body"] };
}

/** Everything below a folder: "dir", the content of a file, or "-> target". */
export function treeOf(folder: string, prefix = ""): Record<string, string> {
  return Object.assign(
    {},
    ...readdirSync(folder, { withFileTypes: true }).map((entry) => {
      const [path, name] = [join(folder, entry.name), prefix + entry.name];
      if (entry.isDirectory()) return { [name]: "dir", ...treeOf(path, `${name}/`) };
      return { [name]: entry.isSymbolicLink() ? `-> ${readlinkSync(path)}` : readFileSync(path, "utf8") };
    }),
  );
}

export function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8);
}
