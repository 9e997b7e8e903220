import type { Migration } from "kysely/migration";
import { init } from "./001-init.ts";

/** In order, never edited after a release; a new step is a new file. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "001-init": init,
};
