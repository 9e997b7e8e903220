import { Type } from "typebox";
import { defineOperation } from "../operation.ts";

export const getHealth = defineOperation({
  id: "getHealth",
  method: "GET",
  path: "/health",
  tag: "platform",
  summary: "Check whether the platform answers",
  auth: [],
  scope: "anyone",
  responses: { 200: { description: "The platform answers. Plain text.", schema: Type.String() } },
  repeatable: true,
  handle: () => ({ status: 200, body: "Health check successful", headers: { "content-type": "text/plain; charset=utf-8" } }),
});
