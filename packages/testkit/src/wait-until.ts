import { setTimeout as sleep } from "node:timers/promises";

/**
 * Polls every 10 ms until `condition` holds, and fails with `what` after `timeoutMs`. It must never hide a race. The limit only ends a test
 * that hangs. It is not a claim about speed, because the machine may be slow and busy.
 */
export async function waitUntil(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await sleep(10);
  }
}
