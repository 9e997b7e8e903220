import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import { parseSnapshotName } from "../../../templates/template-name.ts";
import { actingOf, repeatable, sandboxIdOf, teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { encodeSnapshot, memoryLostHeaders } from "../../output/encode-sandbox.ts";
import { failures, STARTED } from "../../output/responses.ts";
import { SandboxIdParams, SnapshotSchema } from "../../schemas.ts";

export const createSnapshot = defineOperation({
  id: "createSnapshot",
  method: "POST",
  path: "/sandboxes/{sandboxID}/snapshots",
  tag: "snapshots",
  summary: "Take a snapshot of a sandbox",
  description:
    "The sandbox is frozen for a moment and keeps running. Sandboxes that are created from the snapshot start in its state. The snapshot outlives " +
    "the sandbox: delete it as a template. A snapshot under an existing name becomes a new build of that name.",
  auth: ["apiKey"],
  scope: "sandboxes:write",
  params: SandboxIdParams,
  body: Type.Object(
    {
      name: Type.Optional(Type.String({ description: "Its name: `name` or `name:tag`. A snapshot without a name has only an id." })),
      memory: Type.Optional(
        Type.Boolean({ description: "False: keep the files only. Sandboxes created from the snapshot boot.", default: true }),
      ),
    },
    { title: "NewSnapshot" },
  ),
  idempotent: true,
  responses: {
    201: { description: "The snapshot is taken.", schema: SnapshotSchema, headers: STARTED.headers ?? {} },
    ...failures(404, 409, 422, 501, 503),
  },
  repeatable: false,
  handle: async (services, request) => {
    const { body } = request;
    const id = sandboxIdOf(request.params);
    const name = parseSnapshotName(body.name, teamOf(request.caller));
    const memory = body.memory ?? true;
    return await services.idempotency.answer(repeatable(request), {
      asked: { operation: "snapshot", sandbox: id, name, memory },
      subjects: () => [randomUUID()],
      recover: async ([buildId = ""]) => {
        const snapshot = await services.snapshots.findOfBuild(buildId);
        return snapshot && { status: 201, body: encodeSnapshot(snapshot) };
      },
      work: async ([buildId], signal) => {
        const { snapshot, memoryLost } = await services.sandboxes.snapshot(actingOf(request.caller), id, { name, memory, buildId, signal });
        return { status: 201, body: encodeSnapshot(snapshot), headers: memoryLostHeaders(memoryLost) };
      },
    });
  },
});
