// Node.js with everything that a checkpoint must carry: memory, timers, worker threads, a child over pipes, connections, files.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, readSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

const MIB = 1024 * 1024;
const PORT = 7000;
const DIR = "/home/user/soak";

const sha256 = (...parts: readonly (Buffer | string)[]) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
};

/** A worker thread with memory and a timer, which answers messages. */
function work(): void {
  const memory = randomBytes(4 * MIB);
  let ticks = 0;
  setInterval(() => {
    ticks += 1;
  }, 20);
  parentPort?.on("message", () => parentPort?.postMessage({ hash: sha256(memory), ticks }));
}

class Soak {
  readonly #identity = randomBytes(8).toString("hex");
  readonly #memory = Array.from({ length: 24 }, () => randomBytes(MIB));
  readonly #table = new Map(Array.from({ length: 50_000 }, (_unused, index) => [index, randomBytes(24).toString("hex")]));
  readonly #workers = [new Worker(import.meta.filename), new Worker(import.meta.filename)];
  readonly #child: ChildProcessWithoutNullStreams = spawn("cat");
  readonly #appended: number;
  readonly #deleted: number;
  readonly problems: string[] = [];
  #near: Socket | undefined;
  #ticks = 0;
  #workerTicks = 0;
  mark = "";

  constructor() {
    mkdirSync(DIR, { recursive: true });
    writeFileSync(`${DIR}/random`, randomBytes(8 * MIB));
    this.#appended = openSync(`${DIR}/appended`, "a");
    // A deleted file, which exists only through its descriptor.
    this.#deleted = openSync(`${DIR}/deleted`, "w+");
    writeSync(this.#deleted, randomBytes(MIB));
    unlinkSync(`${DIR}/deleted`);
    for (const worker of this.#workers) worker.on("exit", () => this.problems.push("a worker thread ended"));
    this.#child.on("exit", () => this.problems.push("the child ended"));
  }

  async start(): Promise<void> {
    const server = createTcpServer((far) => far.pipe(far)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const near = connect((server.address() as { port: number }).port, "127.0.0.1");
    await once(near, "connect");
    near.on("close", () => this.problems.push("the connection within the sandbox was closed"));
    this.#near = near;
    let before = performance.now();
    setInterval(() => {
      const now = performance.now();
      if (now < before) this.problems.push(`the monotonic clock went back from ${before} to ${now}`);
      before = now;
      writeSync(this.#appended, `${this.#ticks}\n`);
      this.#ticks += 1;
    }, 20);
  }

  async check(): Promise<object> {
    const ticksBefore = this.#ticks;
    await this.#ask("the connection within the sandbox", this.#near as Socket, this.#near as Socket);
    await this.#ask("the child", this.#child.stdin, this.#child.stdout);
    const workers = await Promise.all(this.#workers.map((worker) => this.#askWorker(worker)));
    await this.#awaitTick(ticksBefore);
    const lines = readFileSync(`${DIR}/appended`, "ascii").split("\n").slice(0, -1);
    if (lines.some((line, index) => line !== String(index))) this.problems.push("the appended file is not what was appended");
    const deleted = Buffer.alloc(MIB);
    readSync(this.#deleted, deleted, 0, MIB, 0);
    return {
      identity: `${this.#identity} ${process.pid} ${this.#child.pid}`,
      memory: sha256(...this.#memory, ...this.#table.values(), ...workers.map(({ hash }) => hash)),
      files: sha256(readFileSync(`${DIR}/random`), deleted),
      ticks: this.#ticks,
      clockMs: Date.now(),
      random: kernelRandom(),
      mark: this.mark,
      problems: this.problems,
    };
  }

  async #ask(what: string, to: NodeJS.WritableStream, from: NodeJS.ReadableStream): Promise<void> {
    const answered = once(from, "data", { signal: AbortSignal.timeout(60_000) });
    to.write("are you there?");
    const [answer] = await answered;
    if (String(answer) !== "are you there?") this.problems.push(`${what} lost bytes`);
  }

  async #askWorker(worker: Worker): Promise<{ hash: string }> {
    const answered = once(worker, "message", { signal: AbortSignal.timeout(60_000) });
    worker.postMessage("?");
    const [{ hash, ticks }] = (await answered) as [{ hash: string; ticks: number }];
    this.#workerTicks = Math.max(this.#workerTicks, ticks);
    return { hash };
  }

  async #awaitTick(before: number): Promise<void> {
    const workerTicks = this.#workerTicks;
    const deadline = performance.now() + 60_000;
    while (this.#ticks === before || this.#workerTicks === workerTicks) {
      if (performance.now() > deadline) return void this.problems.push("the timers stand still");
      await sleep(10);
      await Promise.all(this.#workers.map((worker) => this.#askWorker(worker)));
    }
  }
}

/** Reads random bytes without a library, which may buffer them. */
function kernelRandom(): string {
  const file = openSync("/dev/urandom", "r");
  const bytes = Buffer.alloc(16);
  readSync(file, bytes, 0, 16, null);
  closeSync(file);
  return bytes.toString("hex");
}

async function main(): Promise<void> {
  const soak = new Soak();
  process.on("uncaughtException", (error) => soak.problems.push(`uncaught: ${error}`));
  await soak.start();
  createServer(async (request, response) => {
    if (request.method === "GET") return void response.end(JSON.stringify(await soak.check()));
    soak.mark = "";
    for await (const chunk of request) soak.mark += chunk;
    response.end("{}");
  }).listen(PORT, "127.0.0.1");
}

if (isMainThread) await main();
else work();
