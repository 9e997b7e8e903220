import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import type { NodeErrorCode } from "@skerry/wire";
import { ErrorDetailSchema } from "@skerry/wire/node";
import { runCommandIn } from "../src/builds/run-command.ts";
import type { NodeUnderTest } from "./node-under-test.ts";

export const MIB = 1024 * 1024;
const LIMIT_MS = 60_000;

/** The code of a call that fails; undefined for one that succeeds. */
export async function codeOf(call: Promise<unknown>): Promise<NodeErrorCode | undefined> {
  return await call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).findDetails(ErrorDetailSchema)[0]?.code as NodeErrorCode,
  );
}

/** Sandboxes with volumes, and commands in them. */
export class VolumeScene {
  readonly under: NodeUnderTest;
  #count = 0;

  constructor(under: NodeUnderTest) {
    this.under = under;
  }

  async newVolume(sizeBytes = 32 * MIB): Promise<string> {
    const volumeId = randomUUID();
    await this.under.client.createVolume({ volumeId, sizeBytes: BigInt(sizeBytes) });
    return volumeId;
  }

  newSandboxId(): string {
    this.#count += 1;
    return `i${String(this.#count).padStart(20, "0")}`;
  }

  newImageId(): string {
    this.#count += 1;
    return `m${String(this.#count).padStart(19, "0")}`;
  }

  /** A sandbox with the volume at /data. */
  async create(volumeId: string, more: object = {}): Promise<string> {
    const id = this.newSandboxId();
    await this.under.client.createSandbox({ spec: { ...this.under.spec(id), volumeMounts: [{ volumeId, path: "/data" }], ...more } });
    return id;
  }

  resume(id: string, imageId: string, volumeId: string) {
    return this.under.client.resumeSandbox({ spec: { ...this.under.spec(id), imageId, volumeMounts: [{ volumeId, path: "/data" }] } });
  }

  async pause(id: string): Promise<string> {
    const imageId = this.newImageId();
    await this.under.client.pauseSandbox({ sandboxId: id, imageId, memory: true });
    return imageId;
  }

  /** What a command of a shell writes; its exit code, if that is not 0, at the end. */
  async run(id: string, script: string, { user = "user", token = "a-token", timeoutMs = LIMIT_MS } = {}): Promise<string> {
    const lines: string[] = [];
    const target = { address: this.#addressOf(id), token, lost: new AbortController().signal };
    const command = { argv: ["/bin/sh", "-c", script], user, workdir: "/", env: {}, timeoutMs, signal: new AbortController().signal };
    const { exitCode } = await runCommandIn(target, { ...command, onLine: (line: string) => void lines.push(line) });
    return [...lines, ...(exitCode === 0 ? [] : [`exit ${exitCode}`])].join("\n");
  }

  async stat(volumeId: string, path: string) {
    return (await this.under.client.statVolumeEntry({ volumeId, path })).entry;
  }

  async read(volumeId: string, path: string): Promise<string> {
    let text = "";
    for await (const { part } of this.under.client.readVolumeFile({ volumeId, path }))
      if (part.case === "data") text += Buffer.from(part.value).toString();
    return text;
  }

  async write(volumeId: string, path: string, content: string | Uint8Array, more: object = {}) {
    async function* parts() {
      yield { part: { case: "head" as const, value: { volumeId, path, force: true, ...more } } };
      for (let at = 0; at < content.length; at += MIB)
        yield { part: { case: "data" as const, value: new Uint8Array(Buffer.from(content.slice(at, at + MIB) as string)) } };
      yield { part: { case: "end" as const, value: {} } };
    }
    return (await this.under.client.writeVolumeFile(parts())).entry;
  }

  #addressOf(sandboxId: string): string {
    const dir = join(this.under.config.dir, "sandboxes");
    for (const name of readdirSync(dir)) {
      const record = JSON.parse(readFileSync(join(dir, name, "sandbox.json"), "utf8"));
      if (record.sandboxId === sandboxId && record.state === "running") return record.slot.addresses.guest;
    }
    throw new Error(`${sandboxId} does not run`);
  }
}
