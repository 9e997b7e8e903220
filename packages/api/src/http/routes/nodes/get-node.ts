import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { ClusterQuery, encodeNodeDetail, NodeDetailSchema } from "./node-bodies.ts";

export const getNode = defineOperation({
  id: "getNode",
  method: "GET",
  path: "/nodes/{nodeID}",
  tag: "admin",
  summary: "Get a node",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({ nodeID: Type.String({ description: "The node's id." }) }),
  query: ClusterQuery,
  responses: {
    200: { description: "The node.", schema: NodeDetailSchema },
    ...failures(),
    404: { description: "There is no such node. The body is empty." },
  },
  repeatable: true,
  handle: async ({ nodes, clusterId }, { params, query }) => {
    const isOurs = query.clusterID === undefined || query.clusterID === clusterId;
    const node = isOurs ? await nodes.find(params.nodeID) : undefined;
    return node ? { status: 200, body: encodeNodeDetail(node, clusterId) } : { status: 404 };
  },
});
