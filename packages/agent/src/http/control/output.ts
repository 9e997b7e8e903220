import type { OutputLine } from "../../process/output-log.ts";
import type { Exchange } from "../exchange.ts";

/** What the node has not read yet. Beyond it, lines are left out until the node has read. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/**
 * The logged output of this sandbox's processes as newline-delimited JSON, for as long as the node listens: an object with the `source`, and then
 * lines. `?source=…&after=…` names the last line that the node has.
 */
export function output({ req, res, query, state }: Exchange): void {
  const log = state.outputLog();
  const after = Number(query.get("after") ?? 0);
  res.writeHead(200, { "Content-Type": "application/x-ndjson" });
  const { source } = log;
  res.write(`${JSON.stringify({ source })}\n`);
  const send = (line: OutputLine) => {
    // A fork has other lines, and its own connection.
    if (log.source !== source) return void res.end();
    if (res.writableLength < MAX_UNREAD_BYTES) res.write(`${JSON.stringify(line)}\n`);
  };
  const stop = log.follow({ source: query.get("source") ?? "", after: Number.isSafeInteger(after) ? after : 0 }, send);
  req.once("close", stop);
  res.once("close", stop);
}
