// The cluster that this node's sandboxes belong to. A control plane kills sandboxes that its database does not know. With a wrong or empty
// database that would be every sandbox. So each call names its cluster, and the node records the cluster whose sandboxes it holds.
// A node without sandboxes and images joins the cluster of the next call. To move another node, an operator deletes the file while
// the node is stopped.

import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { Logger } from "@skerry/base";
import { CLUSTER_ID_HEADER } from "@skerry/wire";
import { NodeService } from "@skerry/wire/node";
import { type ClusterRecord, readClusterRecord } from "../records/cluster-record.ts";
import { writeRecordDurably } from "../records/record-file.privileged.ts";

/** Shortest time between two logged refusals. A refused control plane asks every few seconds. */
const NOTE_REFUSAL_EVERY_MS = 60_000;

export interface ClusterIdentityOptions {
  readonly file: string;
  /** Whether this node has any sandbox or image of a cluster. */
  readonly holdsAnything: () => boolean;
  /** Called before the node joins another cluster. `from` is "" for a node that belonged to none. */
  readonly onChange: (change: { readonly from: string; readonly to: string }) => void;
  readonly logger: Logger;
}

export class ClusterIdentity {
  readonly #options: ClusterIdentityOptions;
  #remembered: ClusterRecord;
  #callsUnderWay = 0;
  #refusalNotedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ClusterIdentityOptions) {
    this.#options = options;
    this.#remembered = readClusterRecord(options.file);
  }

  /** The cluster that this node belongs to, or "". */
  get id(): string {
    return this.#remembered.id;
  }

  /** The cluster whose sandboxes this node holds, or "" if it holds none or belongs to none. Records that another cluster asked. */
  tell(asking: string): string {
    const id = this.#options.holdsAnything() ? this.#remembered.id : "";
    if (id !== "" && asking !== "" && asking !== id) this.#noteRefusal(asking);
    return id;
  }

  /** Runs a call of the named cluster, or throws FAILED_PRECONDITION with our own cluster's id in its metadata. */
  async run<T>(claimed: string, call: () => T | Promise<T>): Promise<T> {
    if (claimed !== this.#remembered.id) this.#follow(claimed);
    this.#callsUnderWay += 1;
    try {
      return await call();
    } finally {
      this.#callsUnderWay -= 1;
    }
  }

  #follow(claimed: string): void {
    const { id } = this.#remembered;
    // A call in progress may be about to create a sandbox that is not listed yet.
    if (claimed === "" || (id !== "" && (this.#callsUnderWay > 0 || this.#options.holdsAnything()))) throw this.#refuse(claimed);
    this.#options.onChange({ from: id, to: claimed });
    this.#write({ version: 1, id: claimed });
    this.#options.logger.info({ cluster_id: claimed, former_cluster_id: id }, "node joined a cluster");
  }

  #refuse(claimed: string): ConnectError {
    const { id } = this.#remembered;
    this.#noteRefusal(claimed);
    const message =
      `this node holds sandboxes of cluster ${id}, and cluster ${claimed || "(none named)"} asked for them: check the database of that cluster. ` +
      `To give the node and everything on it to another cluster, stop the node and delete ${this.#options.file}`;
    return new ConnectError(message, Code.FailedPrecondition, { [CLUSTER_ID_HEADER]: id });
  }

  #noteRefusal(claimed: string): void {
    if (performance.now() - this.#refusalNotedAt < NOTE_REFUSAL_EVERY_MS) return;
    this.#refusalNotedAt = performance.now();
    const { id } = this.#remembered;
    this.#write({ version: 1, id, refused: { id: claimed, at: new Date().toISOString() } });
    this.#options.logger.error({ cluster_id: id, refused_cluster_id: claimed }, "refused a control plane of another cluster");
  }

  #write(remembered: ClusterRecord): void {
    // The record must survive a loss of power, as the sandboxes do that it protects.
    writeRecordDurably(this.#options.file, remembered);
    this.#remembered = remembered;
  }
}

/** Restricts the service to callers of this node's cluster. GetInfo answers every caller, so that a wrong one can find out. */
export function forOwnCluster(service: ServiceImpl<typeof NodeService>, identity: ClusterIdentity): ServiceImpl<typeof NodeService> {
  const guarded: Record<string, unknown> = {};
  const claimedBy = (context: HandlerContext) => context.requestHeader.get(CLUSTER_ID_HEADER) ?? "";
  for (const { localName, methodKind } of NodeService.methods) {
    const method = service[localName as keyof typeof service] as Method & StreamingMethod;
    guarded[localName] =
      methodKind === "server_streaming"
        ? async function* (request: unknown, context: HandlerContext) {
            await identity.run(claimedBy(context), () => undefined);
            yield* method.call(service, request, context);
          }
        : (request: unknown, context: HandlerContext) => identity.run(claimedBy(context), () => method.call(service, request, context));
  }
  const getInfo: ServiceImpl<typeof NodeService>["getInfo"] = async (request, context) => ({
    ...(await service.getInfo(request, context)),
    clusterId: identity.tell(claimedBy(context)),
  });
  return { ...(guarded as unknown as ServiceImpl<typeof NodeService>), getInfo };
}

type Method = (request: unknown, context: HandlerContext) => Promise<unknown>;
type StreamingMethod = (request: unknown, context: HandlerContext) => AsyncIterable<unknown>;
