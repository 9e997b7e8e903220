// gVisor takes a mount for its own unless an annotation says otherwise: it would not see what other sandboxes change.

import type { VolumePlan } from "../runtime.ts";
import { VOLUME_OPTIONS } from "./mounts.ts";
import type { OciSpec } from "./oci.ts";

const PREFIX = "dev.gvisor.spec.mount.";

export function sharedMountHints(volumes: readonly VolumePlan[]): NonNullable<OciSpec["annotations"]> {
  const hints = volumes.flatMap(({ dir }, index) => [
    [`${PREFIX}v${index}.source`, dir],
    [`${PREFIX}v${index}.type`, "bind"],
    [`${PREFIX}v${index}.share`, "shared"],
    [`${PREFIX}v${index}.options`, VOLUME_OPTIONS.slice(1).join(",")],
  ]);
  return Object.fromEntries(hints);
}
