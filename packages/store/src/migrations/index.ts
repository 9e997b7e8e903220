import type { Migration } from "kysely/migration";
import { init } from "./001-init.ts";
import { images } from "./002-images.ts";
import { processes } from "./003-processes.ts";
import { kept } from "./004-kept.ts";
import { options } from "./005-options.ts";
import { builds } from "./006-builds.ts";
import { templates } from "./007-templates.ts";
import { optionsChange } from "./009-options-change.ts";
import { keys } from "./010-keys.ts";
import { secrets } from "./011-secrets.ts";
import { links } from "./013-links.ts";

/** In order, never edited after a release; a new step is a new file. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "001-init": init,
  "002-images": images,
  "003-processes": processes,
  "004-kept": kept,
  "005-options": options,
  "006-builds": builds,
  "007-templates": templates,
  "009-options-change": optionsChange,
  "010-keys": keys,
  "011-secrets": secrets,
  "013-links": links,
};
