// Names for programs of a test. Many C libraries resolve no names below localhost, and a test must not change its machine. So these programs
// run in a mount namespace, where all names are looked up at a server of the test, which knows one domain.

import { createSocket } from "node:dgram";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunOptions, type RunResult, runCommand } from "@skerry/base";

export interface OwnNames extends AsyncDisposable {
  run(command: string, args: readonly string[], options?: RunOptions): Promise<RunResult>;
}

const SCRIPT = 'mount --bind "$1/resolv.conf" /etc/resolv.conf && mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf && shift && exec "$@"';

/** Every name below `domain` is 127.0.0.1 for the programs. */
export async function ownNames(domain: string): Promise<OwnNames> {
  const server = createSocket("udp4");
  server.on("message", (query, from) => {
    const answer = answerTo(query, domain);
    if (answer) server.send(answer, from.port, from.address);
  });
  // Another address than those of resolvers, which listen on port 53 of 127.0.0.1 or 127.0.0.53.
  const address = `127.77.${1 + (process.pid % 250)}.${1 + Math.floor(Math.random() * 250)}`;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.bind(53, address, resolve);
  });
  const dir = mkdtempSync(join(tmpdir(), "own-names-"));
  writeFileSync(join(dir, "resolv.conf"), `nameserver ${address}\n`);
  writeFileSync(join(dir, "nsswitch.conf"), "hosts: files dns\n");
  return {
    run: (command, args, options) =>
      runCommand("unshare", ["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh", dir, command, ...args], options),
    [Symbol.asyncDispose]: async () => {
      await new Promise<void>((resolve) => server.close(resolve));
      rmSync(dir, { recursive: true });
    },
  };
}

const TYPE_A = 1;
const NO_SUCH_NAME = 3;

/** The answer to a query with one question (RFC 1035). */
function answerTo(query: Buffer, domain: string): Buffer | undefined {
  if (query.length < 17 || query.readUInt16BE(4) !== 1) return undefined;
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.subarray(at + 1, at + 1 + length).toString("latin1"));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const isKnown = `.${labels.join(".").toLowerCase()}`.endsWith(`.${domain}`);
  const hasAddress = isKnown && query.readUInt16BE(at + 1) === TYPE_A;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | (isKnown ? 0 : NO_SUCH_NAME), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(hasAddress ? 1 : 0, 6);
  // A pointer to the name in the question, class IN, one second, four bytes.
  const record = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
  return Buffer.concat(hasAddress ? [head, question, record] : [head, question]);
}
