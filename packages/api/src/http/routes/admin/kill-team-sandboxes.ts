import { Type } from "typebox";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32 } from "../../schemas.ts";
import { uuidOf } from "../keys/key-bodies.ts";

export const killTeamSandboxes = defineOperation({
  id: "killTeamSandboxes",
  method: "POST",
  path: "/admin/teams/{teamID}/sandboxes/kill",
  tag: "admin",
  summary: "Kill a team's running sandboxes",
  description: "Kills the sandboxes that run or are being started when the request arrives. Paused sandboxes stay.",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({ teamID: Type.String({ description: "The team's id." }) }),
  responses: {
    200: {
      description: "How many sandboxes were killed.",
      schema: Type.Object(
        {
          killedCount: Int32({ description: "Sandboxes that were killed.", minimum: 0 }),
          failedCount: Int32({ description: "Sandboxes that could not be killed yet. The platform retries.", minimum: 0 }),
        },
        { title: "AdminSandboxKillResult" },
      ),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async (services, { params, arrivedAt }) => {
    const by = { teamId: uuidOf(params.teamID, "team"), actor: "admin" };
    const { killed, failed } = await services.sandboxes.killRunning(by, arrivedAt);
    return { status: 200, body: { killedCount: killed, failedCount: failed } };
  },
});
