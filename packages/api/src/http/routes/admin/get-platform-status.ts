import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";

const Counts = (description: string) =>
  Type.Unsafe<Record<string, number>>({ type: "object", description, additionalProperties: { type: "integer", minimum: 0 } });
const Count = (description: string) => Type.Integer({ minimum: 0, description });

const Nullable = (description: string) => Type.Union([Count(description), Type.Null()], { description });

const PlatformStatusSchema = Type.Object(
  {
    sandboxes: Counts("Sandboxes by state. Ended ones are known for a day."),
    builds: Counts("Builds by status."),
    teams: Count("Teams."),
    templates: Count("Templates and snapshots."),
    webhooks: Type.Object({
      enabled: Count("Webhooks that are delivered."),
      failing: Count("Those of them whose last delivery failed."),
      disabled: Count("Webhooks that are not delivered."),
    }),
    nodes: Type.Array(
      Type.Object({
        nodeId: Type.String({ description: "The node's id." }),
        status: Type.String({ description: "As `GET /nodes` has it." }),
        readySandboxes: Nullable("Ready sandboxes in its pool."),
        startsRunning: Nullable("Starts under way."),
        startsWaiting: Nullable("Starts in its queue."),
      }),
      { description: "The nodes. Figures of one that does not answer are null." },
    ),
    databaseMs: Type.Number({ minimum: 0, description: "Round trip of the simplest query, in milliseconds." }),
    eventLagMs: Count("Age of the oldest event that readers can't see yet, in milliseconds."),
    uptimeMs: Type.Number({ minimum: 0, description: "How long the API process has run, in milliseconds." }),
    memoryBytes: Count("Memory of the API process."),
  },
  { title: "PlatformStatus" },
);

export const getPlatformStatus = defineOperation({
  id: "getPlatformStatus",
  method: "GET",
  path: "/admin/status",
  tag: "admin",
  summary: "Get the status of the platform",
  description: "What `./skerry status` shows.",
  auth: ["admin"],
  scope: "operator",
  responses: { 200: { description: "The status.", schema: PlatformStatusSchema }, ...failures() },
  repeatable: true,
  handle: async ({ status }) => ({ status: 200, body: await status.read() }),
});
