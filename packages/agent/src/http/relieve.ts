import { killLargest } from "../limits/largest-processes.ts";
import { type Exchange, HttpError, sendJson } from "./exchange.ts";
import { readBody } from "./read-body.ts";

const MAX_BODY_BYTES = 1024;

/** The node's word that this sandbox is over its memory: the largest processes are ended, and named in the answer. */
export async function relieve({ req, res }: Exchange): Promise<void> {
  // Anywhere else the largest process is somebody else's.
  if (process.pid !== 1) throw new HttpError(501, "only the first process of a sandbox ends others");
  const relief = parseRelief(await readBody(req, MAX_BODY_BYTES));
  if (!relief) throw new HttpError(400, "bytes: how much memory to free, a positive number");
  sendJson(res, { killed: killLargest(relief) });
}

function parseRelief(text: string): { bytes: number; insist: boolean } | undefined {
  try {
    const { bytes, insist } = JSON.parse(text) as { bytes?: unknown; insist?: unknown };
    return typeof bytes === "number" && bytes > 0 ? { bytes, insist: insist === true } : undefined;
  } catch {
    return undefined;
  }
}
