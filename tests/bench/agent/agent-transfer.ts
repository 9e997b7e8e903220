// Transfers one file through the edge and the agent, compared with nginx in the same sandbox, which uses the same file and the same edge.

import { request } from "node:http";
import { timed } from "../statistics.ts";
import type { AgentSandbox } from "./agent-sandbox.ts";
import { ByteSource } from "./byte-source.ts";
import { startNginx } from "./nginx.ts";

const ROUNDS = 3;

export interface TransferOptions {
  readonly megabytes: number;
  /** A tar of nginx. Undefined: there is no peer. */
  readonly nginx: Uint8Array | undefined;
}

/** MB/s by name. The contenders take turns. */
export async function transfers(sandbox: AgentSandbox, { megabytes, nginx }: TransferOptions): Promise<Map<string, number[]>> {
  const bytes = megabytes * 1_000_000;
  const source = new ByteSource();
  const file = "/tmp/www/file";
  await sandbox.shell("mkdir -p /tmp/www && chmod 777 /tmp/www");
  const ways: [name: string, work: () => Promise<void>][] = [
    ["upload", () => upload(sandbox, { path: filesPath(file), port: undefined, method: "POST", bytes, source })],
    ["download", () => download(sandbox, { path: filesPath(file), port: undefined, bytes })],
  ];
  if (nginx) {
    const port = await startNginx(sandbox, nginx, "/tmp/www");
    ways.push(
      ["  upload, nginx", () => upload(sandbox, { path: "/put", port, method: "PUT", bytes, source })],
      ["  download, nginx", () => download(sandbox, { path: "/file", port, bytes })],
    );
  }
  const speeds = new Map<string, number[]>(ways.map(([name]) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, work] of ways) {
      const ms = await timed(work);
      if (round >= 0) speeds.get(name)?.push(megabytes / (ms / 1000));
    }
  }
  await sandbox.shell("pkill nginx; rm -r /tmp/www");
  return speeds;
}

export function filesPath(path: string): string {
  return `/files?path=${encodeURIComponent(path)}&username=root`;
}

export interface Upload {
  readonly path: string;
  readonly port: number | undefined;
  readonly method: "POST" | "PUT";
  readonly bytes: number;
  readonly source: ByteSource;
}

export function upload(sandbox: AgentSandbox, { path, port, method, bytes, source }: Upload): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { ...sandbox.headers(port), "Content-Type": "application/octet-stream", "Content-Length": bytes };
    const outgoing = request(sandbox.edgeUrl + path, { method, headers, agent: false }, (answer) => {
      const isWell = answer.statusCode !== undefined && answer.statusCode < 300;
      answer.resume();
      answer.once("end", () => (isWell ? resolve() : reject(new Error(`an upload was answered with ${answer.statusCode}`))));
    });
    outgoing.once("error", reject);
    source.pour(outgoing, bytes);
  });
}

export function download(sandbox: AgentSandbox, wanted: { path: string; port: number | undefined; bytes: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(sandbox.edgeUrl + wanted.path, { headers: sandbox.headers(wanted.port), agent: false }, (answer) => {
      let received = 0;
      answer.on("data", (chunk: Buffer) => {
        received += chunk.length;
      });
      answer.once("error", reject);
      answer.once("end", () => {
        if (answer.statusCode === 200 && received === wanted.bytes) resolve();
        else reject(new Error(`a download was answered with ${answer.statusCode} and ${received} bytes`));
      });
    });
    outgoing.once("error", reject);
    outgoing.end();
  });
}
