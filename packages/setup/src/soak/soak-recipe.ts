import { createHash } from "node:crypto";
import type { ArchiveSelection } from "../base/from-archive.ts";
import { BASE_PACKAGES, LEFT_OUT } from "../base/recipe.ts";

/** Increment it when ensure-soak-template.ts builds something else from the same data. */
const REVISION = 3;

/** Packages that the soak needs besides those of the base template. */
const PACKAGES: Readonly<Record<string, string>> = {
  "chromium-headless-shell": "Chromium without a desktop's libraries",
  "default-jre-headless": "a JVM, and in its modules the compiler that runs a single source file",
  postgresql: "the server, pgbench and pg_amcheck",
};

/** Further paths that are left out: not needed by the soak, and a quarter of the size. */
const ALSO_LEFT_OUT = [
  "/usr/lib/*/libLLVM*",
  "/usr/lib/*/dri/*",
  "/usr/lib/*/libz3.so*",
  "/usr/lib/chromium/libVkLayer*",
  "/usr/lib/jvm/*/lib/server/classes_nocoops.jsa",
  "/usr/share/i18n/*",
  "/usr/share/icons/*",
];

const HOOKS = [
  // The JVM's package creates links in this folder and fails without it.
  'mkdir -p "$1/usr/share/man/man1"',
  // The soak creates its own database.
  'mkdir -p "$1/etc/postgresql-common" && echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"',
];

export const SOAK_SELECTION: ArchiveSelection = {
  packages: [...Object.keys(BASE_PACKAGES), ...Object.keys(PACKAGES)],
  leftOut: [...LEFT_OUT, ...ALSO_LEFT_OUT],
  hooks: HOOKS,
};

/** Identifies the layer that would be built now. */
export function soakRecipeHash(inputs: { distribution: string; arch: string; nodeVersion: string; npmVersion: string }): string {
  return createHash("sha256")
    .update(JSON.stringify([REVISION, SOAK_SELECTION, inputs]))
    .digest("hex");
}
