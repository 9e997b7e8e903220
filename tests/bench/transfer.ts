// 100 MB up and down through the SDK, compared with a plain HTTP server on loopback that receives and sends the same bytes.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { startPlatform } from "@skerry/testkit";
import type { Bench, Row } from "./bench.ts";
import { createSandbox } from "./sdk.ts";
import { distribution, timed } from "./statistics.ts";

const SIZE_BYTES = 100 * 1000 * 1000;
const ROUNDS = 5;

export const transfer: Bench = {
  name: "transfer",
  title: "100 MB through the SDK, MB/s",
  async run() {
    const content = randomBytes(SIZE_BYTES);
    const rows: Row[] = [];
    for (const runtime of ["gvisor", "runc"] as const) {
      await using platform = await startPlatform({ runtime });
      const sandbox = await createSandbox(platform);
      const path = "/home/user/transfer.bin";
      const up = await speeds(() => sandbox.files.write(path, new Blob([content])));
      let received: Uint8Array = new Uint8Array();
      const down = await speeds(async () => {
        received = await sandbox.files.read(path, { format: "bytes" });
      });
      if (!sameBytes(received, content)) throw new Error("the downloaded bytes differ from the uploaded ones");
      await sandbox.kill();
      rows.push(row(`upload, skerry on ${runtime}`, up), row(`download, skerry on ${runtime}`, down));
    }
    const plain = await plainHttp(content);
    rows.push(row("upload, plain HTTP on loopback", plain.up), row("download, plain HTTP on loopback", plain.down));
    return { rows, notes: [] };
  },
};

const row = (name: string, samples: number[]): Row => ({ name, unit: "MB/s", ...distribution(samples), samples });

async function speeds(once: () => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let round = -1; round < ROUNDS; round++) {
    const elapsedMs = await timed(once);
    if (round >= 0) samples.push(SIZE_BYTES / 1e6 / (elapsedMs / 1000));
  }
  return samples;
}

async function plainHttp(content: Buffer): Promise<{ up: number[]; down: number[] }> {
  const server = createServer(async (request, response) => {
    if (request.method === "GET") response.end(content);
    else {
      for await (const _chunk of request);
      response.end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    const up = await speeds(async () => (await fetch(url, { method: "POST", body: new Blob([new Uint8Array(content)]) })).text());
    const down = await speeds(async () => (await fetch(url)).arrayBuffer());
    return { up, down };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
  return a.length === b.length && digest(a) === digest(b);
}
