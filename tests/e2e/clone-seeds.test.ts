// Random numbers of programs that run while their sandbox is cloned. Clones, forks and the sandbox itself continue with different ones, in
// every template of the project. Only gVisor keeps memory.

import { type SharedPlatform, sharedPlatform } from "@skerry/testkit/run-services";
import { waitUntil } from "@skerry/testkit/wait-until";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callApi, clientOf } from "./client.ts";

/** The templates of `packages/setup/src`. Add new ones here. */
const SHIPPED = ["base"];

/** The rest of a Python program, which draws random numbers once, and then for each connection. */
function answerWith(port: number): string {
  return `draw()
server = socket.create_server(("127.0.0.1", ${port}))
while True:
    client, _ = server.accept()
    with client:
        client.sendall(json.dumps(draw()).encode() + b"\\n")
`;
}

/** Programs that respond to each connection with a line of JSON: the next numbers of their generators, which were all used before. */
const PROGRAMS: Readonly<Record<string, { readonly port: number; readonly start: string; readonly text: string }>> = {
  "python.py": {
    port: 4101,
    start: "python3 python.py",
    text: `
import concurrent.futures, json, random, socket, ssl
pool = concurrent.futures.ThreadPoolExecutor(1)
def draw():
    return {
        "random": random.random(),
        "shuffle": random.sample(range(10**6), 5),
        "RAND_bytes": ssl.RAND_bytes(16).hex(),
        "RAND_bytes of a thread": pool.submit(ssl.RAND_bytes, 16).result().hex(),
    }
${answerWith(4101)}`,
  },
  // In a virtual environment, and with OpenSSL's own functions as C programs use them.
  "openssl.py": {
    port: 4102,
    start: "python3 -m venv --without-pip environment && environment/bin/python openssl.py",
    text: `
import ctypes, json, socket
crypto = ctypes.CDLL("libcrypto.so.3")
crypto.EVP_PKEY_Q_keygen.restype = ctypes.c_void_p
def key():
    made = crypto.EVP_PKEY_Q_keygen(None, None, b"EC", b"P-256")
    size = crypto.i2d_PrivateKey(ctypes.c_void_p(made), None)
    buffer = ctypes.create_string_buffer(size)
    crypto.i2d_PrivateKey(ctypes.c_void_p(made), ctypes.byref(ctypes.pointer(buffer)))
    crypto.EVP_PKEY_free(ctypes.c_void_p(made))
    return buffer.raw.hex()
def draw():
    buffer = ctypes.create_string_buffer(16)
    crypto.RAND_priv_bytes(buffer, 16)
    return {"RAND_priv_bytes": buffer.raw.hex(), "EC key": key()}
${answerWith(4102)}`,
  },
  "node.mjs": {
    port: 4103,
    start: "node node.mjs",
    text: `
import * as crypto from "node:crypto";
import { createServer } from "node:net";
import { promisify } from "node:util";
const pem = ({ privateKey }) => privateKey.export({ type: "pkcs8", format: "pem" });
const draw = async () => ({
  "Math.random": Math.random(),
  randomUUID: crypto.randomUUID(),
  randomBytes: crypto.randomBytes(16).toString("hex"),
  "randomBytes of a thread": (await promisify(crypto.randomBytes)(16)).toString("hex"),
  randomInt: crypto.randomInt(2 ** 47),
  getRandomValues: Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(16))).toString("hex"),
  "EC key": pem(crypto.generateKeyPairSync("ec", { namedCurve: "P-256" })),
  "EC key of a thread": pem(await promisify(crypto.generateKeyPair)("ec", { namedCurve: "P-256" })),
});
await draw();
createServer(async (socket) => socket.end(JSON.stringify(await draw()) + "\\n")).listen(4103, "127.0.0.1");
`,
  },
};

/** The second of two responses. Before its first response a program may not have handled the signal yet. */
const READ = `
import socket, sys
for _ in range(2):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
        line = client.makefile().readline()
print(line)
`;

type Draws = Readonly<Record<string, unknown>>;

describe.each(SHIPPED)("random numbers of programs in the template %s", (template) => {
  let platform: SharedPlatform;
  beforeAll(async () => {
    platform = await sharedPlatform("gvisor");
  });
  afterAll(() => platform?.[Symbol.asyncDispose]());

  async function startPrograms(): Promise<Sandbox> {
    const sandbox = await Sandbox.create(template, clientOf(platform));
    await sandbox.files.write("read.py", READ);
    for (const [name, { start, text }] of Object.entries(PROGRAMS)) {
      await sandbox.files.write(name, text);
      await sandbox.commands.run(start, { background: true, timeoutMs: 0 });
    }
    const ports = Object.values(PROGRAMS).map(({ port }) => `:${port}`);
    await waitUntil("the programs listen", async () => {
      const { stdout } = await sandbox.commands.run("ss -ltn");
      return ports.every((port) => stdout.includes(port));
    });
    return sandbox;
  }

  const draw = async (sandbox: Sandbox, name: string): Promise<Draws> =>
    JSON.parse((await sandbox.commands.run(`python3 read.py ${PROGRAMS[name]?.port}`)).stdout) as Draws;

  async function fork(sandbox: Sandbox, count: number): Promise<Sandbox[]> {
    const { body } = await callApi(platform, `/sandboxes/${sandbox.sandboxId}/fork`, { body: { count, timeout: 3_600 } });
    const ids = (body as { sandbox: { sandboxID: string } }[]).map((made) => made.sandbox.sandboxID);
    return Promise.all(ids.map((id) => Sandbox.connect(id, clientOf(platform))));
  }

  it("differ between all sandboxes that continue from one memory", async () => {
    const source = await startPrograms();
    const { snapshotId } = await source.createSnapshot();
    const clones = [await Sandbox.create(snapshotId, clientOf(platform)), await Sandbox.create(snapshotId, clientOf(platform))];
    const forks = await fork(source, 2);
    await source.pause();
    const late = await fork(source, 1);
    const resumed = await Sandbox.connect(source.sandboxId, clientOf(platform));
    const all = [...clones, ...forks, ...late, resumed];
    for (const name of Object.keys(PROGRAMS)) {
      const drawn: Draws[] = [];
      for (const sandbox of all) drawn.push(await draw(sandbox, name));
      const same = Object.keys(drawn[0] ?? {}).filter(
        (generator) => new Set(drawn.map((draws) => JSON.stringify(draws[generator]))).size < all.length,
      );
      expect({ name, same }).toEqual({ name, same: [] });
    }
    for (const sandbox of all) await sandbox.kill();
    await Sandbox.deleteSnapshot(snapshotId, clientOf(platform));
  });

  it("differ between the forks of a fork", async () => {
    const source = await startPrograms();
    const [first] = await fork(source, 1);
    if (!first) throw new Error("there is no fork");
    const second = await fork(first, 2);
    const all = [source, first, ...second];
    const drawn: Draws[] = [];
    for (const sandbox of all) drawn.push(await draw(sandbox, "node.mjs"));
    expect(new Set(drawn.map(({ randomUUID }) => randomUUID)).size).toBe(all.length);
    for (const sandbox of all) await sandbox.kill();
  });
});
