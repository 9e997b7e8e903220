import { randomBytes } from "node:crypto";
import { link, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../operator-error.ts";
import { describeProcess, readLiveProcess } from "./process-record.ts";

/**
 * One set-up or shutdown at a time per data folder. A lock whose holder is gone is taken over. With `wait` a living
 * holder is waited for, else it is an error.
 */
export async function takeSetupLock(path: string, options: { wait?: boolean } = {}): Promise<AsyncDisposable> {
  for (;;) {
    if (await placeLock(path)) return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
    const holder = await readLiveProcess(path).catch(() => undefined);
    if (holder && options.wait) {
      await sleep(100);
      continue;
    }
    if (holder) {
      throw new OperatorError(`another ./skerry (process ${holder.pid}) is setting up or stopping this data folder`, {
        mend: ["Wait until it has ended, then try again."],
      });
    }
    await rm(path, { force: true });
  }
}

/** The file appears with its content: an empty one would look like that of a holder who is gone. */
async function placeLock(path: string): Promise<boolean> {
  const staged = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(staged, JSON.stringify(await describeProcess(process.pid)), { flag: "wx", mode: 0o644 });
    await link(staged, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(staged, { force: true });
  }
}
