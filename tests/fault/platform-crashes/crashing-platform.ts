// A platform that kills itself at a crash point during an API request, and is started again.

import { execFileSync } from "node:child_process";
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

/** A sandbox with its witness. */
export interface Subject {
  readonly id: string;
  readonly seen: Seen;
}

/** The node's record of a sandbox. */
interface SandboxRecord {
  readonly sandboxId: string;
  readonly process: { readonly pid: number };
  readonly slot: { readonly hostInterface: string };
  readonly options: { readonly denyOut?: readonly string[] };
}

/** Hours, so that no sandbox reaches its timeout during a test. */
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

  /** A request that can be repeated: with its own idempotency key if the operation accepts one. */
  keyed(path: string, body: unknown): () => Promise<Answer> {
    this.#keys += 1;
    const headers = { "Idempotency-Key": `crash-${this.#keys}` };
    return () => this.call(path, { body, headers });
  }

  /** The platform ends at this point, during or after the request, and starts again. Undefined if the request was not answered. */
  async crash(point: CrashPoint, call: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
    const { ended } = await this.platform.arm(point);
    const answer = await call().catch(() => undefined);
    // A refused request does not reach the point.
    const isRefused = answer !== undefined && answer.status >= 400;
    const how = isRefused ? "refused" : await Promise.race([ended, sleep(60_000, "not reached", { ref: false })]);
    if (how !== "SIGKILL") await this.platform.kill9();
    await this.platform.start();
    expect(how, `${point}: ${answer?.status} ${JSON.stringify(answer?.body)}`).toBe("SIGKILL");
    return answer;
  }

  /** The response of a request, which must have one of these statuses. */
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

  /** The pid on the host of the first process of a sandbox's runtime. */
  runtimePidOf(id: string): number {
    return this.#recordOf(id).process.pid;
  }

  #recordOf(id: string): SandboxRecord {
    const dir = join(this.platform.dataDir, "node/sandboxes");
    const records = readdirSync(dir).map((name) => JSON.parse(readFileSync(join(dir, name, "sandbox.json"), "utf8")) as SandboxRecord);
    const record = records.find(({ sandboxId }) => sandboxId === id);
    if (!record) throw new Error(`the node has no record of ${id}`);
    return record;
  }

  /** What the node's record has of a sandbox's network rules. "half" while the firewall has a chain for it and no rules are recorded, or the reverse. */
  rulesOf(id: string): { denyOut: readonly string[] } | "half" | undefined {
    const { slot, options } = this.#recordOf(id);
    const hasChain = execFileSync("nft", ["list", "ruleset"], { encoding: "utf8" }).includes(`jump only_${slot.hostInterface}`);
    if (hasChain !== (options.denyOut !== undefined)) return "half";
    return options.denyOut && { denyOut: options.denyOut };
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

  /** Whether a paused sandbox has lost its memory, according to the API. */
  async saysFilesOnly(id: string): Promise<boolean> {
    return ((await this.call(`/sandboxes/${id}`)).body as { pauseMode?: string }).pauseMode === "filesystem";
  }

  async listed(): Promise<string[]> {
    return ((await this.call("/v2/sandboxes")).body as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID).sort();
  }

  /** The number of the last journal line about the sandbox. */
  journalEnd(id: string): number {
    return journalOf(this.platform, id).at(-1)?.version ?? 0;
  }

  /**
   * Asks the witness of a running sandbox. Returns true if the memory is there. Fails if memory is lost and neither a response nor the
   * journal (after line `since`) says so, and if one of them says so although the memory is there.
   */
  async expectTold({ id, seen }: Subject, told: { since: number; answers: readonly Answer[]; filesOnly?: boolean }): Promise<boolean> {
    const kept = await hasMemory(this.platform, id, seen);
    const journal = journalOf(this.platform, id).filter(({ version }) => version > told.since);
    const inJournal = journal.some(({ reason }) => reason?.startsWith("memory_lost: "));
    const isTold = told.answers.some(({ headers }) => headers.has(HEADER)) || inJournal || told.filesOnly === true;
    expect({ kept, isTold }, JSON.stringify(journal)).toEqual({ kept, isTold: !kept });
    return kept;
  }

  /** Waits until no background work is left, because it could reach a crash point that is meant for another operation. */
  async untilQuiet(images = 0): Promise<void> {
    const below = (folder: string) => readdirSync(join(this.platform.dataDir, "node", folder)).length;
    await waitUntil(`the trash is empty and there are ${images} images`, () => below("trash") === 0 && below("images") === images);
  }
}

export function sandboxIdOf({ body }: Answer): string {
  return (body as { sandboxID: string }).sandboxID;
}
