// What the operations on volumes read and answer.

import type { Volume } from "@skerry/store";
import { isUuid } from "@skerry/wire";
import { type Static, Type } from "typebox";
import { invalid, validationError } from "../../../errors.ts";
import type { VolumeAndToken } from "../../../volumes/volume-service.ts";
import type { Encoding } from "../../output/encode-sandbox.ts";
import { Int32 } from "../../schemas.ts";

const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
export const MIN_SIZE_MB = 8;
export const MAX_SIZE_MB = 16 * 1024 * 1024;

const fields = {
  volumeID: Type.String({ description: "The volume's id." }),
  name: Type.String({ description: "The name by which sandboxes mount it." }),
  sizeMB: Int32({ description: "How much it can hold, in MiB. An addition of Skerry.", minimum: MIN_SIZE_MB }),
};

export const VolumeSchema = Type.Object(fields, { title: "Volume" });

export const VolumeAndTokenSchema = Type.Object(
  {
    ...fields,
    token: Type.String({ description: "The token for the content of the volume, valid for a day." }),
    domain: Type.Optional(
      Type.String({ description: "The domain of the content API, if clients should use it instead of their own setting." }),
    ),
  },
  { title: "VolumeAndToken" },
);

export const NewVolumeSchema = Type.Object(
  {
    name: Type.String({ description: "1 to 128 letters, digits, `_` and `-`. Unique in the team." }),
    sizeMB: Type.Optional(
      Int32({
        description: "How much it can hold, in MiB; without it, what the operator chose. An addition of Skerry.",
        minimum: MIN_SIZE_MB,
        maximum: MAX_SIZE_MB,
      }),
    ),
  },
  { title: "NewVolume" },
);

export const VolumeParams = Type.Object({ volumeID: Type.String({ description: "The volume's id." }) });

export function volumeIdOf({ volumeID }: Static<typeof VolumeParams>): string {
  if (!isUuid(volumeID)) throw invalid("Invalid volume ID");
  return volumeID.toLowerCase();
}

export function volumeNameOf(name: string): string {
  if (!NAME.test(name)) throw validationError("body/name must be 1 to 128 letters, digits, '_' and '-'");
  return name;
}

export function encodeVolume({ id, name, sizeMb }: Pick<Volume, "id" | "name" | "sizeMb">): Static<typeof VolumeSchema> {
  return { volumeID: id, name, sizeMB: sizeMb };
}

export function encodeVolumeAndToken(
  { advertiseDomain }: Encoding,
  { volume, token }: VolumeAndToken,
): Static<typeof VolumeAndTokenSchema> {
  return { ...encodeVolume(volume), token, ...(advertiseDomain === undefined ? {} : { domain: advertiseDomain }) };
}
