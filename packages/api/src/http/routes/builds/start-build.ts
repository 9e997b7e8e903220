import { type Static, Type } from "typebox";
import type { BuildStart, GivenStep } from "../../../builds/build-service.ts";
import { invalid, validationError } from "../../../errors.ts";
import { teamOf } from "../../input/request-values.ts";
import { defineOperation } from "../../operation.ts";
import { failures } from "../../output/responses.ts";
import { BuildParams } from "./build-bodies.ts";
import { isBeforeDefaultUser } from "./client-version.ts";

const MAX_STEPS = 1_000;

const RegistrySchema = Type.Union([
  Type.Object({ type: Type.Literal("registry"), username: Type.String(), password: Type.String() }),
  Type.Object({
    type: Type.Literal("aws"),
    awsAccessKeyId: Type.String(),
    awsSecretAccessKey: Type.String(),
    awsRegion: Type.String(),
  }),
  Type.Object({ type: Type.Literal("gcp"), serviceAccountJson: Type.String() }),
]);

const StepSchema = Type.Object(
  {
    type: Type.String({ description: "`RUN`, `COPY`, `ADD`, `ENV`, `ARG`, `WORKDIR` or `USER`, in any case." }),
    args: Type.Optional(Type.Array(Type.String())),
    filesHash: Type.Optional(Type.String({ description: "The hash of the uploaded files. Required for `COPY` and `ADD`." })),
    force: Type.Optional(Type.Boolean({ description: "Do not use a cached result of this step, nor of the steps after it." })),
  },
  { title: "TemplateStep" },
);

const StartSchema = Type.Object(
  {
    fromImage: Type.Optional(Type.String({ description: "An OCI image. Exactly one of `fromImage` and `fromTemplate` is given." })),
    fromTemplate: Type.Optional(Type.String({ description: "A template: `[namespace/]name[:tag]`, or an id." })),
    fromImageRegistry: Type.Optional(
      Type.Unsafe<Static<typeof RegistrySchema>>({ ...RegistrySchema, description: "Credentials of the registry. They are not stored." }),
    ),
    force: Type.Optional(Type.Boolean({ description: "Use no cached step.", default: false })),
    steps: Type.Optional(Type.Array(StepSchema, { maxItems: MAX_STEPS })),
    startCmd: Type.Optional(Type.String({ description: "A command that runs in every sandbox of the template." })),
    readyCmd: Type.Optional(Type.String({ description: "A command that succeeds when the template is ready." })),
  },
  { title: "TemplateBuildStartV2" },
);

export const startBuild = defineOperation({
  id: "startBuild",
  method: "POST",
  path: "/v2/templates/{templateID}/builds/{buildID}",
  tag: "templates",
  summary: "Start a build",
  description:
    "Starts a waiting build, which runs in the background. A source that cannot be found fails the build, not the request. Running builds of " +
    "the template with one of the same tags are cancelled.",
  auth: ["apiKey"],
  scope: "templates:build",
  params: BuildParams,
  body: StartSchema,
  responses: { 202: { description: "The build is started." }, ...failures(403, 404, 413, 429, 503) },
  repeatable: false,
  handle: async (services, { caller, params, body, headers }) => {
    const job = await services.builds.findToStart([teamOf(caller)], { templateId: params.templateID, buildId: params.buildID });
    assertNoNul(body);
    const hasImage = body.fromImage !== undefined && body.fromImage !== "";
    const hasTemplate = body.fromTemplate !== undefined && body.fromTemplate !== "";
    if (hasImage === hasTemplate) {
      const message = `Error when starting template build: ${hasImage ? "only one" : "one"} of fromImage and fromTemplate must be given`;
      await services.builds.refuse(job, message);
      throw invalid(message);
    }
    await services.builds.start(job, buildStartOf(body, headers["user-agent"]));
    return { status: 202 };
  },
});

function buildStartOf(body: Static<typeof StartSchema>, userAgent: string | undefined): BuildStart {
  const { fromImage, fromTemplate = "", fromImageRegistry, startCmd, readyCmd } = body;
  return {
    source: fromImage
      ? { kind: "image", reference: fromImage, credentials: fromImageRegistry }
      : { kind: "template", reference: fromTemplate },
    steps: (body.steps ?? []).map(stepOf),
    force: body.force ?? false,
    ...(startCmd === undefined ? {} : { startCommand: startCmd }),
    ...(readyCmd === undefined ? {} : { readyCommand: readyCmd }),
    withoutDefaultUser: isBeforeDefaultUser(userAgent),
    isLegacy: false,
  };
}

function stepOf({ type, args = [], filesHash = "", force = false }: Static<typeof StepSchema>): GivenStep {
  if (filesHash !== "" && !/^[0-9a-f]{64}$/.test(filesHash)) throw invalid("Invalid files hash");
  return { type: type.toUpperCase(), args, filesHash, force };
}

/** No command, path or name can contain NUL. */
function assertNoNul(body: unknown): void {
  if (JSON.stringify(body).includes("\\u0000")) throw validationError("body must not contain the character NUL");
}
