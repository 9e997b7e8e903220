import { open, rm } from "node:fs/promises";
import { OperatorError } from "../operator-error.ts";
import { describeProcess, readLiveProcess } from "./process-record.ts";

/** One set-up or shutdown at a time per data folder. A lock whose holder is gone is taken over. */
export async function takeSetupLock(path: string): Promise<AsyncDisposable> {
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
    if (holder) {
      throw new OperatorError(`another ./skerry (process ${holder.pid}) is setting up or stopping this data folder`, {
        mend: ["Wait until it has ended, then try again."],
      });
    }
    await rm(path, { force: true });
  }
}
