import { isUuid } from "@skerry/wire";
import { Type } from "typebox";
import { invalid } from "../../../errors.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { Int32 } from "../../schemas.ts";

export const cancelTeamBuilds = defineOperation({
  id: "cancelTeamBuilds",
  method: "POST",
  path: "/admin/teams/{teamID}/builds/cancel",
  tag: "admin",
  summary: "Cancel a team's builds",
  description: "Ends all builds of the team that wait, are queued or run.",
  auth: ["admin"],
  scope: "operator",
  params: Type.Object({ teamID: Type.String({ description: "The team's id." }) }),
  responses: {
    200: {
      description: "How many builds were cancelled.",
      schema: Type.Object(
        {
          cancelledCount: Int32({ description: "Builds that were cancelled.", minimum: 0 }),
          failedCount: Int32({ description: "Builds that could not be cancelled.", minimum: 0 }),
        },
        { title: "AdminBuildCancelResult" },
      ),
    },
    ...failures(),
  },
  repeatable: true,
  handle: async (services, { params }) => {
    if (!isUuid(params.teamID)) throw invalid("Invalid team ID");
    const { cancelled, failed } = await services.builds.cancelOfTeam(params.teamID.toLowerCase());
    return { status: 200, body: { cancelledCount: cancelled, failedCount: failed } };
  },
});
