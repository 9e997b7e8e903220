// A control plane with one sandbox, whose state and whose resume a test controls.

import { createServer } from "node:http";
import { Code, ConnectError, createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { type FindRouteRequest, RouteRefusalSchema, RouteService } from "@skerry/wire/control";
import { type RouteTable, routeTableFrom } from "../src/index.ts";
import { listen, type Reach, SANDBOX_ID, type Sandboxes } from "./parts.ts";

export class Control {
  /** The ports of the sandbox while it is paused. */
  #sleeping: Map<number, number> | undefined;
  #sandboxes: Sandboxes | undefined;
  #nodeUrl = "";
  readonly asked: Pick<FindRouteRequest, "wake" | "port" | "accessToken" | "probe">[] = [];
  resumes = 0;
  aborted = 0;
  /** Runs on a wake. By default, it resumes the sandbox. */
  onWake: () => Promise<void> = async () => this.resume();
  /** The detail of refusals. */
  absence: { state: string; endReason?: string; endedAt?: string } = { state: "paused" };
  autoResume = true;

  attach(sandboxes: Sandboxes, nodeUrl: string): void {
    this.#sandboxes = sandboxes;
    this.#nodeUrl = nodeUrl;
  }

  /** Resets open connections and refuses dials, as a node does. */
  pause(): void {
    this.#sleeping = this.#sandboxes?.ports.get(SANDBOX_ID);
    this.#sandboxes?.kill(SANDBOX_ID);
  }

  resume(): void {
    if (!this.#sleeping) return;
    this.resumes++;
    this.#sandboxes?.ports.set(SANDBOX_ID, this.#sleeping);
    this.#sleeping = undefined;
  }

  refuse(code: Code, message = "refused"): never {
    throw new ConnectError(message, code, undefined, [{ desc: RouteRefusalSchema, value: this.absence }]);
  }

  async tableOver(reach: Reach, stack: AsyncDisposableStack): Promise<RouteTable> {
    const service: ServiceImpl<typeof RouteService> = {
      findSigner: async () => ({ sandboxId: "" }),
      findLink: async () => ({}),
      findRoute: async ({ sandboxId, wake, port, accessToken, probe }, context) => {
        this.asked.push({ wake, port, accessToken, probe });
        context.signal.addEventListener("abort", () => this.aborted++);
        if (!this.#sandboxes?.ports.has(sandboxId) && wake && this.autoResume && sandboxId === SANDBOX_ID) await this.onWake();
        if (!this.#sandboxes?.ports.has(sandboxId)) this.refuse(Code.NotFound);
        return { nodeId: "node-1", nodeUrl: this.#nodeUrl, run: String(this.resumes) };
      },
    };
    if (reach === "direct") return tableFrom(createRouterTransport((router) => router.service(RouteService, service)));
    const port = await listen(createServer(connectNodeAdapter({ routes: (router) => router.service(RouteService, service) })), stack);
    return tableFrom(createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: "1.1" }));
  }
}

function tableFrom(transport: ReturnType<typeof createRouterTransport>): RouteTable {
  return routeTableFrom(createClient(RouteService, transport));
}
