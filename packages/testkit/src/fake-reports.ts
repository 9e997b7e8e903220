import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { EgressBatchSchema, NodeService, OutputBatchSchema, UsageRoundSchema } from "@skerry/wire/node";

/** What a fake node has measured and written down. */
export class FakeReports {
  /** The rounds of measurements that it has. */
  usage: MessageInitShape<typeof UsageRoundSchema>[] = [];
  /** The batches of logged output that it has, the oldest first. */
  output: MessageInitShape<typeof OutputBatchSchema>[] = [];
  /** The batches of egress logs that it has, the oldest first. */
  egress: MessageInitShape<typeof EgressBatchSchema>[] = [];

  /** `before` runs before each answer. */
  protected reportCalls(
    before: (signal: HandlerContext["signal"]) => Promise<void>,
  ): Pick<ServiceImpl<typeof NodeService>, "readEgress" | "readOutput" | "readUsage"> {
    return {
      readUsage: async ({ afterMs }, context) => {
        await before(context.signal);
        return { nowMs: BigInt(Date.now()), rounds: this.usage.filter(({ atMs = 0n }) => atMs > afterMs).slice(0, 12) };
      },
      readOutput: async ({ source, number }, context) => {
        await before(context.signal);
        const stored = this.output.findIndex((batch) => batch.source === source && batch.number === number);
        this.output = this.output.slice(stored + 1);
        const [batch] = this.output;
        return { nowMs: BigInt(Date.now()), ...(batch && { batch }) };
      },
      readEgress: async ({ source, number }, context) => {
        await before(context.signal);
        const stored = this.egress.findIndex((batch) => batch.source === source && batch.number === number);
        this.egress = this.egress.slice(stored + 1);
        const [batch] = this.egress;
        return { nowMs: BigInt(Date.now()), ...(batch && { batch }) };
      },
    };
  }
}
