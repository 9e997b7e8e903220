import type { AuditLine } from "@skerry/store";
import { Type } from "typebox";
import { encodeActor } from "./encode-event.ts";

const Id = (description: string) => Type.Optional(Type.String({ description }));

export const AuditLineSchema = Type.Object(
  {
    number: Type.Integer({ description: "Counts the lines of the platform, without a gap." }),
    timestamp: Type.String({ format: "date-time", description: "When the request was answered, to within a second." }),
    duration_ms: Type.Optional(Type.Integer({ description: "How long the request took." })),
    request_id: Id("The request, as its answer, events and the log name it."),
    operation: Id("The `operationId`. Absent in a line that counts refusals of several operations."),
    outcome: Type.String({
      description: "`done`, `refused` (401, 403, 429), `failed`, or `unknown`: the process ended before the answer.",
    }),
    status: Type.Optional(Type.Integer({ description: "HTTP status." })),
    reason: Id("The code of the error."),
    count: Type.Integer({
      description: "How many requests the line stands for. Requests like an earlier one, within a minute, share a line.",
    }),
    team_id: Id("The team that the caller acted for."),
    actor: Type.Object({ type: Type.String({ description: "`key`, `user`, `operator` or `anyone`." }), id: Id("Of the key or user.") }),
    user_id: Id("The user of the token, or the member who signed in with the key."),
    credential: Type.Optional(
      Type.Object({ id: Id("Of the key or token."), mask: Type.String({ description: "What lists show of it." }) }),
    ),
    address: Id("The client's address."),
    subject_id: Id("The id in the path."),
    made_ids: Type.Optional(Type.Array(Type.String(), { description: "The ids in the answer." })),
  },
  { title: "AuditLine" },
);

export function encodeAuditLine(line: AuditLine): Record<string, unknown> {
  // JSON leaves out what is undefined.
  return {
    number: line.number,
    timestamp: new Date(line.at).toISOString(),
    duration_ms: line.durationMs ?? undefined,
    request_id: line.requestId ?? undefined,
    operation: line.operation ?? undefined,
    outcome: line.outcome,
    status: line.status ?? undefined,
    reason: line.reason ?? undefined,
    count: line.count,
    team_id: line.teamId ?? undefined,
    actor: encodeActor(line.actor),
    user_id: line.userId ?? undefined,
    credential: line.credentialMask === null ? undefined : { id: line.credentialId ?? undefined, mask: line.credentialMask },
    address: line.address ?? undefined,
    subject_id: line.subjectId ?? undefined,
    made_ids: line.madeIds?.split(","),
  };
}
