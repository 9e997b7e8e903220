import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { spawnCommand } from "@skerry/base";
import { bundleProgram } from "@skerry/testkit/bundle-program";
import type { FakeNode } from "@skerry/testkit/fake-node";
import { ApiHarness } from "./api-harness.ts";

/** Built once, because each test starts it twice. */
let program: Promise<string> | undefined;

/** The harness seeds the database and sends the requests. The process under test answers them. */
export class KillableApi extends ApiHarness {
  #child: ReturnType<typeof spawnCommand> | undefined;
  #environment: Record<string, string> = {};

  static async over(databaseUrl: string, node: FakeNode, nodeUrl: string, environment: Record<string, string> = {}): Promise<KillableApi> {
    const killable = await KillableApi.seeded(databaseUrl, [node], (store, nodes) => new KillableApi(store, nodes));
    killable.#environment = { DATABASE_URL: databaseUrl, NODE_URL: nodeUrl, BLOBS_DIR: await killable.blobsDir, ...environment };
    await killable.begin();
    return killable;
  }

  /** A second process with the same database and node. This one owns both. */
  async another(ownerId: string): Promise<KillableApi> {
    const other = new KillableApi(this.store, this.nodes);
    other.#environment = { ...this.#environment, OWNER_ID: ownerId };
    await other.begin();
    return other;
  }

  async begin(): Promise<void> {
    program ??= bundleProgram(join(import.meta.dirname, "api-process.ts"));
    const child = spawnCommand(process.execPath, [await program], {
      env: {
        ...this.#environment,
        PATH: process.env.PATH ?? "",
        ...(process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
      },
      stdout: "pipe",
      stderr: process.env.TEST_LOG === undefined ? "ignore" : 2,
    });
    this.#child = child;
    const [line] = await once(createInterface({ input: child.stdout as Readable }), "line");
    this.url = String(line);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.store.close();
    await rm(await this.blobsDir, { recursive: true, force: true });
  }
}
