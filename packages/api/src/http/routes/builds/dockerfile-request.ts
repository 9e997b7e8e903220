// Builds of a Dockerfile that is in the request itself. Such a request has no files, so a Dockerfile that copies some is refused.

import { DockerfileError, parseDockerfile } from "@skerry/dockerfile";
import type { Team } from "@skerry/store";
import { type Static, Type } from "typebox";
import type { BuildStart } from "../../../builds/build-service.ts";
import { invalid, validationError } from "../../../errors.ts";
import { parseTemplateName } from "../../../templates/template-name.ts";
import type { OperationResponse } from "../../operation.ts";
import type { ApiServices } from "../../services.ts";
import { encodeLegacy, SizeFields } from "./build-bodies.ts";

export const DockerfileSchema = Type.Object(
  {
    dockerfile: Type.String({ description: "The text of a Dockerfile without COPY and ADD." }),
    alias: Type.Optional(Type.String({ description: "`[namespace/]name[:tag]`." })),
    teamID: Type.Optional(Type.String({ description: "For users with several teams: the team of a new template." })),
    startCmd: Type.Optional(Type.String({ description: "Instead of ENTRYPOINT and CMD." })),
    readyCmd: Type.Optional(Type.String({ description: "A command that succeeds when the template is ready." })),
    ...SizeFields,
  },
  { title: "TemplateBuildRequest" },
);

/** Registers a build of a Dockerfile, and starts it. With `templateId`, it is another build of that template. */
export async function answerDockerfile(
  services: ApiServices,
  body: Static<typeof DockerfileSchema>,
  { team, templateId }: { readonly team: Team; readonly templateId?: string },
): Promise<OperationResponse> {
  const name = body.alias === undefined ? undefined : parseTemplateName(body.alias, team);
  const size = await services.builds.sizeOf(team, body);
  const start = startOf(body);
  const asked = { team, size, ...(name && { name }), ...(templateId === undefined ? {} : { templateId }) };
  const requested = await services.builds.requestAndStart(asked, start);
  return { status: 202, body: encodeLegacy(requested, { namespace: team.slug, alias: name?.alias, size }) };
}

function startOf({ dockerfile, startCmd, readyCmd }: Static<typeof DockerfileSchema>): BuildStart {
  for (const command of [startCmd, readyCmd]) if (command?.includes("\0")) throw validationError("body must not contain the character NUL");
  const { fromImage, steps, startCommand } = parse(dockerfile);
  const problems = steps
    .filter(({ type }) => type === "COPY")
    .map(({ line, isAdd }) => `line ${line}: ${isAdd ? "ADD" : "COPY"} needs files, which this request cannot carry`);
  if (problems.length > 0) {
    throw invalid(`${[...new Set(problems)].join("\n")}\nBuild with \`./skerry templates build\` or an SDK instead, which upload files`);
  }
  const command = startCmd ?? startCommand;
  return {
    source: { kind: "image", reference: fromImage, credentials: undefined },
    steps: steps.map(({ type, args }) => ({ type, args, filesHash: "", force: false })),
    force: false,
    ...(command === "" ? {} : { startCommand: command }),
    ...(readyCmd === undefined ? {} : { readyCommand: readyCmd }),
    withoutDefaultUser: false,
    isLegacy: true,
  };
}

function parse(text: string): ReturnType<typeof parseDockerfile> {
  try {
    return parseDockerfile(text);
  } catch (error) {
    if (error instanceof DockerfileError) throw invalid(`The Dockerfile cannot be built:\n${error.message}`);
    throw error;
  }
}
