// A platform that ends itself at a crash point while it does what it was asked for through its API, and is started again.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CrashPoint } from "@skerry/node/crash-points";
import { type Platform, startPlatform } from "@skerry/testkit";
import { waitUntil } from "@skerry/testkit/wait-until";
import { expect } from "vitest";
import { callApi } from "../../e2e/client.ts";
import type { Runtime } from "../crash-points/plan.ts";
import { journalOf } from "./journal.ts";
import { hasMemory, type Seen, startWitness } from "./witness.ts";

type Answer = Awaited<ReturnType<typeof callApi>>;

/** A sandbox with a witness in it. */
export interface Subject {
  readonly id: string;
  readonly seen: Seen;
}

/** What the node has written down of a sandbox. */
interface SandboxRecord {
  readonly sandboxId: string;
  readonly process: { readonly pid: number };
}

/** Hours: no test's sandbox comes to its end by itself. */
const TIMEOUT_SECONDS = 3_600;
const HEADER = "skerry-memory-lost";

export class CrashingPlatform implements AsyncDisposable {
  readonly platform: Platform;
  #keys = 0;

  private constructor(platform: Platform) {
    this.platform = platform;
  }

  static async start(runtime: Runtime, env: Readonly<Record<string, string>> = {}): Promise<CrashingPlatform> {
    return new CrashingPlatform(await startPlatform({ runtime, env, armable: true }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.platform[Symbol.asyncDispose]();
  }

  call(path: string, options: Parameters<typeof callApi>[2] = {}): Promise<Answer> {
    return callApi(this.platform, path, options);
  }

  /** A call that may be sent again: with a key of its own, where the operation takes one. */
  keyed(path: string, body: unknown): () => Promise<Answer> {
    this.#keys += 1;
    const headers = { "Idempotency-Key": `crash-${this.#keys}` };
    return () => this.call(path, { body, headers });
  }

  /** The platform ends at this point, in the middle of the call or behind it, and is up again. Undefined: it was not answered. */
  async crash(point: CrashPoint, call: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const { ended } = await this.platform.arm(point);
    const answer = await call().catch(() => undefined);
    // What was refused goes nowhere.
    const isRefused = answer !== undefined && answer.status >= 400;
    const how = isRefused ? "refused" : await Promise.race([ended, sleep(30_000, "not reached", { ref: false })]);
    if (how !== "SIGKILL") await this.platform.kill9();
    await this.platform.start();
    expect(how, `${point}: ${answer?.status} ${JSON.stringify(answer?.body)}`).toBe("SIGKILL");
    return answer;
  }

  /** What a call answers, which has to have one of these statuses. */
  async expectStatus(call: Promise<Answer>, ...statuses: readonly number[]): Promise<Answer> {
    const answer = await call;
    expect(statuses, `${answer.status} ${JSON.stringify(answer.body)}`).toContain(answer.status);
    return answer;
  }

  readonly createBody = (templateID = "base") => ({ templateID, timeout: TIMEOUT_SECONDS });

  async create(templateID?: string): Promise<string> {
    return sandboxIdOf(await this.expectStatus(this.call("/v2/sandboxes", { body: this.createBody(templateID) }), 201));
  }

  async createSubject(): Promise<Subject> {
    const id = await this.create();
    return { id, seen: await startWitness(this.platform, id) };
  }

  /** The first process of a sandbox's runtime, as it is on this host. */
  runtimePidOf(id: string): number {
    const dir = join(this.platform.dataDir, "node/sandboxes");
    const records = readdirSync(dir).map((name) => JSON.parse(readFileSync(join(dir, name, "sandbox.json"), "utf8")) as SandboxRecord);
    const pid = records.find(({ sandboxId }) => sandboxId === id)?.process.pid;
    if (pid === undefined) throw new Error(`the node has no record of ${id}`);
    return pid;
  }

  pause(id: string): Promise<Answer> {
    return this.call(`/sandboxes/${id}/pause`, { body: {} });
  }

  connect(id: string): Promise<Answer> {
    return this.call(`/v2/sandboxes/${id}/connect`, { body: { timeout: TIMEOUT_SECONDS } });
  }

  kill(id: string): Promise<Answer> {
    return this.call(`/sandboxes/${id}`, { method: "DELETE" });
  }

  async stateOf(id: string): Promise<string> {
    return (((await this.call(`/sandboxes/${id}`)).body ?? {}) as { state?: string }).state ?? "gone";
  }

  /** True for a paused sandbox whose memory was not kept, as its owner can read. */
  async saysFilesOnly(id: string): Promise<boolean> {
    return ((await this.call(`/sandboxes/${id}`)).body as { pauseMode?: string }).pauseMode === "filesystem";
  }

  async listed(): Promise<string[]> {
    return ((await this.call("/v2/sandboxes")).body as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID).sort();
  }

  /** The number of the journal's last line about it. */
  journalEnd(id: string): number {
    return journalOf(this.platform, id).at(-1)?.version ?? 0;
  }

  /**
   * Asks the witness of a sandbox that runs. Fails where memory is gone and neither an answer nor the journal (after line `since`) says so,
   * and where one says so though it is there. True: it is there.
   */
  async expectTold({ id, seen }: Subject, told: { since: number; answers: readonly Answer[]; filesOnly?: boolean }): Promise<boolean> {
    const kept = await hasMemory(this.platform, id, seen);
    const journal = journalOf(this.platform, id).filter(({ version }) => version > told.since);
    const inJournal = journal.some(({ reason }) => reason?.startsWith("memory_lost: "));
    const isTold = told.answers.some(({ headers }) => headers.has(HEADER)) || inJournal || told.filesOnly === true;
    expect({ kept, isTold }, JSON.stringify(journal)).toEqual({ kept, isTold: !kept });
    return kept;
  }

  /** Nothing is being released or deleted in the background, where it could reach a point that is meant for something else. */
  async untilQuiet(images = 0): Promise<void> {
    const below = (folder: string) => readdirSync(join(this.platform.dataDir, "node", folder)).length;
    await waitUntil(`the trash is empty and there are ${images} images`, () => below("trash") === 0 && below("images") === images, 30_000);
  }
}

export function sandboxIdOf({ body }: Answer): string {
  return (body as { sandboxID: string }).sandboxID;
}
