// What the operations on builds share: fields of bodies, path parameters, and answers.

import { Type } from "typebox";
import { Int32 } from "../../schemas.ts";

export const BuildParams = Type.Object({
  templateID: Type.String({ description: "The template's id." }),
  buildID: Type.String({ description: "The build's id." }),
});

export const SizeFields = {
  cpuCount: Type.Optional(Int32({ description: "Virtual CPUs of the sandboxes: 1, or an even number up to 32.", default: 2 })),
  memoryMB: Type.Optional(Int32({ description: "Memory of the sandboxes in MiB: an even number from 128 to 65536.", default: 1024 })),
};

export const BuildRequestedSchema = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String({ format: "uuid" }),
    public: Type.Boolean(),
    names: Type.Array(Type.String(), { description: "The template's names, with their namespace." }),
    tags: Type.Array(Type.String(), { description: "The tags that the build gets when it is ready." }),
    aliases: Type.Array(Type.String(), { deprecated: true }),
  },
  { title: "TemplateRequestResponseV3" },
);
