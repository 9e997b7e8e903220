// The record of a volume (`<volumes>/<id>/volume.json`).

import { type RecordKind, type RecordOf, recordParser } from "@skerry/base/records";
import { Type } from "typebox";

export const VOLUME_KIND = {
  name: "volume",
  version: 1,
  steps: {},
  schema: Type.Object({
    version: Type.Literal(1),
    volumeId: Type.String(),
    sizeMb: Type.Integer(),
    createdAtMs: Type.Number(),
  }),
} as const satisfies RecordKind;

export type VolumeRecord = RecordOf<typeof VOLUME_KIND>;

export const parseVolumeRecord = recordParser(VOLUME_KIND);
