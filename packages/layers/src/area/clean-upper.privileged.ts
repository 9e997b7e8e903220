// An upper directory as a layer: overlayfs left notes in it about the layers below, which mean nothing on another machine and make equal
// trees different. What was deleted or replaced stays marked.

import { lstatSync } from "node:fs";
import { readXattrs, removeXattr, setXattr } from "@skerry/base/linux";
import { walkTrees } from "./descent.privileged.ts";

const PREFIX = "trusted.overlay.";
const OPAQUE = "trusted.overlay.opaque";
/** Without this attribute, overlayfs lists the deleted files of a directory that only one layer has. Empty: the origin is unknown. */
const ORIGIN = "trusted.overlay.origin";

/** Removes what overlayfs noted about other layers. Preconditions: root; nothing else uses the tree. */
export async function cleanUpper(upper: string): Promise<void> {
  await walkTrees([upper], {
    async enter([folder], { pace }) {
      if (!folder) return [];
      const folders: Buffer[] = [];
      let hidesSome = false;
      for (const entry of folder.entries()) {
        const path = folder.path(entry.name);
        if (entry.isDirectory()) folders.push(entry.name);
        else if (entry.isCharacterDevice() && lstatSync(path).rdev === 0) hidesSome = true;
        else clean(path);
        await pace.keep();
      }
      clean(folder.path("."));
      if (hidesSome) setXattr(folder.path("."), ORIGIN, Buffer.alloc(0));
      return folders;
    },
  });
}

function clean(path: Buffer): void {
  for (const [bytes] of readXattrs(path)) {
    const name = bytes.toString();
    if (name.startsWith(PREFIX) && name !== OPAQUE) removeXattr(path, name);
  }
}
