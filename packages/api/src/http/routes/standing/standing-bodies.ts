import { type Static, Type } from "typebox";
import type { ShownStanding } from "../../../teams/standing-service.ts";

const StandingSchema = Type.Union([Type.Literal("active"), Type.Literal("blocked"), Type.Literal("banned")], {
  description: "`blocked`: the team reads and deletes only. `banned`: every request of the team is refused.",
});
const Reason = Type.String({ maxLength: 256, pattern: "^[^\\u0000-\\u001f]*$", description: "Shown to the team; of a blocked team only." });

export const NewStandingSchema = Type.Object({ standing: StandingSchema, reason: Type.Optional(Reason) }, { title: "NewTeamStanding" });

export const TeamStandingSchema = Type.Object(
  { teamID: Type.String({ description: "The team's id." }), standing: StandingSchema, reason: Type.Optional(Reason) },
  { title: "TeamStanding" },
);

export function encodeStanding({ teamId, standing, reason }: ShownStanding): Static<typeof TeamStandingSchema> {
  return { teamID: teamId, standing, ...(reason === "" ? {} : { reason }) };
}
