// Collects from each node what logged processes of its sandboxes wrote. Every API process collects everything: a line is stored once, whoever
// delivers it.
//
// Failure policy: a node that does not answer, or a database that is away, delays the lines. The node keeps them, up to a bound of each sandbox.

import type { Logger } from "@skerry/base";
import type { LogLine, SandboxLogRepository } from "@skerry/store";
import type { OutputLine } from "@skerry/wire/node";
import type { NodeHandle } from "../nodes/directory.ts";
import type { Nodes } from "../nodes/nodes.ts";

/** Batches of one node in one round, so that no node keeps the others waiting. */
const BATCHES_AT_ONCE = 10;

export interface OutputCollectorDeps {
  readonly nodes: Nodes;
  readonly sandboxLogs: SandboxLogRepository;
  readonly logger: Logger;
  readonly timeoutMs: number;
}

export class OutputCollector {
  readonly #deps: OutputCollectorDeps;
  /** By node: the last batch that is stored. */
  readonly #stored = new Map<string, { readonly source: string; readonly number: bigint }>();
  constructor(deps: OutputCollectorDeps) {
    this.#deps = deps;
  }

  /** Collects from all nodes what they have. */
  async collect(): Promise<void> {
    const { nodes, logger } = this.#deps;
    await Promise.all(
      nodes.list().map((node) =>
        this.#collectFrom(node).catch((error: unknown) => {
          logger.debug({ err: error, node_id: node.nodeId }, "collecting the output of processes from a node failed");
        }),
      ),
    );
  }

  async #collectFrom(node: NodeHandle): Promise<void> {
    const { sandboxLogs, timeoutMs } = this.#deps;
    for (let count = 0; count < BATCHES_AT_ONCE; count += 1) {
      const { batch } = await node.client.readOutput(this.#stored.get(node.nodeId) ?? {}, { timeoutMs });
      if (!batch) return;
      for (const [sandboxId, lines] of Map.groupBy(batch.lines, (line) => line.sandboxId)) {
        for (const [source, ofSource] of Map.groupBy(lines, ({ agentSource }) => agentSource)) {
          await sandboxLogs.appendDelivered(sandboxId, { source, lines: ofSource.flatMap(logLines) });
        }
      }
      this.#stored.set(node.nodeId, { source: batch.source, number: batch.number });
    }
  }
}

type NumberedLine = LogLine & { readonly number: number };

/** A line, and before it the number of those that are missing. */
function logLines({ number, atMs, pid, stream, text, omitted }: OutputLine): NumberedLine[] {
  const at = Number(atMs);
  const line: NumberedLine = {
    number: Number(number),
    at,
    level: stream === "stderr" || stream === "agent" ? "warn" : "info",
    logger: stream === "agent" ? "agent" : "process",
    message: text,
    fields: stream === "agent" ? {} : { pid: String(pid), stream },
    isGuest: true,
  };
  if (omitted === 0) return [line];
  const message = `${omitted} lines of output are missing here, because the sandbox wrote faster than they could be stored`;
  return [{ ...line, number: line.number - 1, level: "warn", logger: "platform", message, fields: {} }, line];
}
