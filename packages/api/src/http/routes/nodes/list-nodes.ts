import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { ClusterQuery, encodeNode, NodeSchema } from "./node-bodies.ts";

export const listNodes = defineOperation({
  id: "listNodes",
  method: "GET",
  path: "/nodes",
  tag: "admin",
  summary: "List the nodes",
  description: "All nodes that have answered at least once, with their status and load.",
  auth: ["admin"],
  scope: "operator",
  query: ClusterQuery,
  responses: { 200: { description: "The nodes.", schema: Type.Array(NodeSchema) }, ...failures() },
  repeatable: true,
  handle: async ({ nodes, clusterId }, { query }) => {
    const listed = query.clusterID === undefined || query.clusterID === clusterId ? await nodes.list() : [];
    return { status: 200, body: listed.map((node) => encodeNode(node, clusterId)) };
  },
});
