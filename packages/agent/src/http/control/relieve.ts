import { killLargest, killWithMostFiles } from "../../limits/largest-processes.ts";
import { type Exchange, HttpError, sendJson } from "../exchange.ts";
import { readBody } from "../read-body.ts";

const MAX_BODY_BYTES = 1024;

/**
 * Kills the processes that hold the most, and names them in the response. The node calls it when this sandbox exceeds its memory limit
 * or has too many files open.
 */
export async function relieve({ req, res }: Exchange): Promise<void> {
  // Outside a sandbox the largest process does not belong to a guest.
  if (process.pid !== 1) throw new HttpError(501, "the agent kills processes only as process 1 of a sandbox");
  const relief = parseRelief(await readBody(req, MAX_BODY_BYTES));
  if (!relief) throw new HttpError(400, "the body must have a positive number: bytes (of memory to free) or files (to close)");
  sendJson(res, { killed: "files" in relief ? killWithMostFiles(relief.files) : killLargest(relief) });
}

function parseRelief(text: string): { bytes: number; insist: boolean } | { files: number } | undefined {
  try {
    const { bytes, insist, files } = JSON.parse(text) as { bytes?: unknown; insist?: unknown; files?: unknown };
    if (typeof files === "number" && files > 0) return { files };
    return typeof bytes === "number" && bytes > 0 ? { bytes, insist: insist === true } : undefined;
  } catch {
    return undefined;
  }
}
