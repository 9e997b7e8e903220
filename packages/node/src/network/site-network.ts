// Decides which sandboxes are told how the operator's site reaches the internet. The settings are in no layer and in no record. A sandbox
// gets them when it boots, and again when it comes from an image, because the operator may have changed them since.

import { createHash } from "node:crypto";
import { Secret } from "@skerry/base";
import { NO_SITE, type SiteNetwork } from "@skerry/wire";
import type { NodeConfig } from "../config.ts";
import type { ImageRecord } from "../records/image-record.ts";

const NONE = new Secret(NO_SITE);

type Sited = Pick<NodeConfig, "site">;

/** The settings for a sandbox that boots from layers, comes from `image`, or is restored with the memory of `image`. */
export function siteFor(
  { site }: Sited,
  { image, isRestored }: { readonly image: Pick<ImageRecord, "kind"> | undefined; readonly isRestored: boolean },
): Secret<SiteNetwork> | undefined {
  if (!image) return site;
  // Its agent was told before the image was taken. The settings are part of the image's key.
  if (image.kind === "template" && isRestored) return undefined;
  return site ?? NONE;
}

/** Changes with the settings; "" when there are none. */
export function siteKey({ site }: Sited): string {
  return site === undefined ? "" : createHash("sha256").update(JSON.stringify(site.reveal())).digest("hex");
}
