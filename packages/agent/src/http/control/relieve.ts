import { killLargest, killWithMostFiles } from "../../limits/largest-processes.ts";
import { type Exchange, HttpError, sendJson } from "../exchange.ts";
import { readBody } from "../read-body.ts";

const MAX_BODY_BYTES = 1024;

/** The node's word that this sandbox is over its memory, or has too many files open: who holds the most is ended, and named in the answer. */
export async function relieve({ req, res }: Exchange): Promise<void> {
  // Anywhere else the largest process is somebody else's.
  if (process.pid !== 1) throw new HttpError(501, "only the first process of a sandbox ends others");
  const relief = parseRelief(await readBody(req, MAX_BODY_BYTES));
  if (!relief) throw new HttpError(400, "bytes: how much memory to free, or files: how many to close; a positive number");
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
