import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "@skerry/base";
import type { SandboxRepository } from "@skerry/store";
import { parseSandboxId } from "@skerry/wire";
import type { RouteService } from "@skerry/wire/control";

/** Where a sandbox's traffic goes. The edge asks this for what it does not remember, so it is one read by primary key. */
export function createRouteService(sandboxes: SandboxRepository, clock: Clock): ServiceImpl<typeof RouteService> {
  return {
    async findRoute(request) {
      const id = parseSandboxId(request.sandboxId);
      const route = id && (await sandboxes.findRoute(id, clock.now()));
      if (!route) throw new ConnectError("the sandbox was not found", Code.NotFound);
      return { nodeId: route.nodeId, nodeUrl: route.nodeUrl };
    },
  };
}
