import { open, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { OperatorError } from "../operator-error.ts";
import { describeProcess, readLiveProcess } from "./process-record.ts";

/**
 * One set-up or shutdown at a time per data folder. A lock whose holder is gone is taken over. With `wait` a living
 * holder is waited for, else it is an error.
 */
export async function takeSetupLock(path: string, options: { wait?: boolean } = {}): Promise<AsyncDisposable> {
  for (;;) {
    try {
      const file = await open(path, "wx", 0o644);
      await file.writeFile(JSON.stringify(await describeProcess(process.pid)));
      await file.close();
      return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
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
