import type { Platform } from "@skerry/testkit";
import { callApi } from "../../e2e/client.ts";

const DISK = "/home/user/mark";
const MEMORY = "/dev/shm/mark";

/** A sandbox of the soak. */
export interface Guest {
  readonly sandboxId: string;
  /** Writes a mark to its disk and to its memory. */
  mark(): Promise<void>;
  /** Throws if a mark is lost. Without `memory`, throws if the mark in memory is still there. */
  check(expected: { memory: boolean }): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  kill(): Promise<void>;
}

export async function guestOf(platform: Platform): Promise<Guest> {
  const created = await expectStatus(201, callApi(platform, "/v2/sandboxes", { body: { templateID: "base", timeout: 3600 } }));
  const { sandboxID: sandboxId, envdAccessToken } = created as { sandboxID: string; envdAccessToken: string };
  const headers = { "E2b-Sandbox-Id": sandboxId, "E2b-Sandbox-Port": "49983", "X-Access-Token": envdAccessToken };
  const url = (path: string) => `${platform.edgeUrl}/files?${new URLSearchParams({ path, username: "user" })}`;
  const own = `/sandboxes/${sandboxId}`;
  const read = async (path: string) => {
    const response = await fetch(url(path), { headers });
    return { status: response.status, text: await response.text() };
  };
  return {
    sandboxId,
    async mark() {
      for (const path of [DISK, MEMORY]) {
        const response = await fetch(url(path), {
          method: "POST",
          headers: { ...headers, "Content-Type": "application/octet-stream" },
          body: `${path} of ${sandboxId}`,
        });
        if (response.status !== 200) throw new Error(`${sandboxId}: writing ${path} answered ${response.status}: ${await response.text()}`);
        await response.body?.cancel();
      }
    },
    async check({ memory }) {
      for (const [path, isThere] of [
        [DISK, true],
        [MEMORY, memory],
      ] as const) {
        const { status, text } = await read(path);
        const right = isThere ? status === 200 && text === `${path} of ${sandboxId}` : status === 404;
        if (!right) throw new Error(`${sandboxId}: ${path} has unexpected content (${status}): ${text.slice(0, 200)}`);
      }
    },
    async pause() {
      await expectStatus(204, callApi(platform, `${own}/pause`, { method: "POST" }));
    },
    async resume() {
      await expectStatus(201, callApi(platform, `${own}/resume`, { body: { timeout: 3600 } }));
    },
    async kill() {
      await expectStatus(204, callApi(platform, own, { method: "DELETE" }));
    },
  };
}

async function expectStatus(status: number, answering: ReturnType<typeof callApi>): Promise<unknown> {
  const answer = await answering;
  if (answer.status !== status) throw new Error(`answered ${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}
