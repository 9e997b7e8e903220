// What the operations on limits read and answer.

import type { LimitName, LimitValues } from "@skerry/store";
import { type Static, type TSchema, Type } from "typebox";
import type { ShownTeamLimits, ShownTier } from "../../../teams/limit-service.ts";
import { type LimitAbout, type Limits, limitEntries } from "../../../teams/limits.ts";

const limitValue = ({ what, min, max }: LimitAbout) =>
  Type.Union([Type.Integer({ minimum: min, maximum: max }), Type.Null()], { description: `${what} \`null\`: no limit.` });

const eachLimit = (schemaOf: (about: LimitAbout) => TSchema): Record<string, TSchema> =>
  Object.fromEntries(limitEntries().map(([, about]) => [about.shown, schemaOf(about)]));

const AllSchema = Type.Unsafe<Record<string, number | null>>(Type.Object(eachLimit(limitValue), { title: "Limits" }));

const SomeSchema = Type.Unsafe<Record<string, number | null>>(
  Type.Object(
    eachLimit((about) => Type.Optional(limitValue(about))),
    { title: "LimitChanges", additionalProperties: false },
  ),
);

export const TierSchema = Type.Object(
  {
    name: Type.String({ description: "The tier's name." }),
    set: SomeSchema,
    limits: AllSchema,
  },
  { title: "Tier", description: "`set` has what the tier sets itself, and `limits` what its teams get." },
);

export const NewTierSchema = Type.Object({ limits: SomeSchema }, { title: "NewTier" });

export const TeamLimitsSchema = Type.Object(
  {
    teamID: Type.String({ description: "The team's id." }),
    tier: Type.String({ description: "The team's tier." }),
    overrides: SomeSchema,
    limits: AllSchema,
    use: Type.Object(
      {
        sandboxes: Type.Integer({ description: "Sandboxes that run or are being started." }),
        cpu: Type.Integer({ description: "Their virtual CPUs." }),
        memoryMB: Type.Integer({ description: "Their memory in MiB." }),
        diskMB: Type.Integer({ description: "The disk sizes of all sandboxes, also of paused ones, in MiB." }),
        builds: Type.Integer({ description: "Builds that are queued or run." }),
        snapshots: Type.Integer({ description: "Snapshots." }),
        volumes: Type.Integer({ description: "Volumes." }),
        volumeMB: Type.Integer({ description: "Their sizes in MiB." }),
      },
      { title: "TeamUse", description: "What the team has now." },
    ),
  },
  { title: "TeamLimits", description: "`overrides` has what was set for the team itself, and `limits` what counts for it." },
);

export const NewTeamLimitsSchema = Type.Object(
  {
    tier: Type.Optional(Type.String({ description: "The team's tier.", default: "default" })),
    overrides: Type.Optional(SomeSchema),
  },
  { title: "NewTeamLimits" },
);

export const TierParams = Type.Object({ tier: Type.String({ description: "The tier's name." }) });
export const TeamParams = Type.Object({ teamID: Type.String({ description: "The team's id." }) });

/** The limits of a body, by their own names. */
export function limitsOf(body: Readonly<Record<string, number | null>> | undefined): LimitValues {
  const given = limitEntries().filter(([, { shown }]) => body?.[shown] !== undefined);
  return Object.fromEntries(given.map(([name, { shown }]) => [name, body?.[shown] ?? null]));
}

export function encodeTier({ name, set, limits }: ShownTier): Static<typeof TierSchema> {
  return { name, set: encodeLimits(set), limits: encodeLimits(limits) };
}

export function encodeTeamLimits({ teamId, tier, overrides, limits, use }: ShownTeamLimits): Static<typeof TeamLimitsSchema> {
  const { running, diskMb, builds, snapshots, volumes } = use;
  return {
    teamID: teamId,
    tier,
    overrides: encodeLimits(overrides),
    limits: encodeLimits(limits),
    use: {
      sandboxes: running.count,
      cpu: running.cpuCount,
      memoryMB: running.memoryMb,
      diskMB: diskMb,
      builds,
      snapshots,
      volumes: volumes.count,
      volumeMB: volumes.sizeMb,
    },
  };
}

function encodeLimits(limits: Limits | LimitValues): Record<string, number | null> {
  const known = limitEntries().filter(([name]) => (limits as LimitValues)[name] !== undefined);
  return Object.fromEntries(known.map(([name, { shown }]: readonly [LimitName, LimitAbout]) => [shown, limits[name] ?? null]));
}
