import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32 } from "../../schemas.ts";

const DEFAULT_SECONDS = 240;

export const suspendPlatform = defineOperation({
  id: "suspendPlatform",
  method: "POST",
  path: "/admin/suspend",
  tag: "admin",
  summary: "Pause every sandbox before the host goes down",
  description:
    "Pauses all running sandboxes with their memory. The next start of the platform resumes them with the time that they had left. Until then the platform starts no sandboxes. An extension of Skerry.",
  auth: ["admin"],
  scope: "operator",
  body: Type.Object(
    {
      withinSeconds: Type.Optional(
        Int32({
          description: "Time for saving memory. Sandboxes whose turn comes later are paused without their memory.",
          minimum: 0,
          maximum: 86_400,
          default: DEFAULT_SECONDS,
        }),
      ),
    },
    { title: "SuspendRequest" },
  ),
  bodyOptional: true,
  responses: {
    200: {
      description: "Nothing is left to pause.",
      schema: Type.Object(
        {
          pausedCount: Int32({ description: "Sandboxes that are paused now.", minimum: 0 }),
          withoutMemory: Type.Array(Type.String(), { description: "Those of them that lost their memory." }),
          stillRunning: Type.Array(Type.String(), { description: "Sandboxes that could not be paused." }),
        },
        { title: "SuspendResult" },
      ),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async (services, { body }) => {
    const { paused, withoutMemory, stillRunning } = await services.sandboxes.suspendAll((body?.withinSeconds ?? DEFAULT_SECONDS) * 1_000);
    return { status: 200, body: { pausedCount: paused, withoutMemory: [...withoutMemory], stillRunning: [...stillRunning] } };
  },
});
