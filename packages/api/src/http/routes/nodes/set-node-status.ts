import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { NodeStatusSchema } from "./node-bodies.ts";

export const setNodeStatus = defineOperation({
  id: "setNodeStatus",
  method: "POST",
  path: "/nodes/{nodeID}",
  tag: "admin",
  summary: "Set the status of a node",
  description:
    "`draining` and `standby`: the node gets no new sandboxes, forks and builds. Its sandboxes go on, and its paused ones can be resumed. `ready`: it gets new ones again.",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({ nodeID: Type.String({ description: "The node's id." }) }),
  body: Type.Object(
    { status: NodeStatusSchema, clusterID: Type.Optional(Type.String({ description: "The node's cluster." })) },
    { title: "NodeStatusChange" },
  ),
  responses: {
    204: { description: "The node has the status." },
    ...failures(409),
    404: { description: "There is no such node. The body is empty." },
  },
  repeatable: true,
  handle: async ({ nodes, clusterId }, { params, body }) => {
    const isOurs = body.clusterID === undefined || body.clusterID === clusterId;
    return { status: isOurs && (await nodes.setStatus(params.nodeID, body.status)) ? 204 : 404 };
  },
});
