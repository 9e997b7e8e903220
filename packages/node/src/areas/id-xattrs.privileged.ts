// Attributes of files that have ids of users and groups in them: access control lists, and capabilities that count in one user namespace.

import { findXattr } from "@skerry/base/linux";

export interface Xattr {
  readonly name: string;
  readonly value: Buffer;
}

const ACCESS_LISTS = ["system.posix_acl_access", "system.posix_acl_default"];
const CAPABILITY = "security.capability";

// linux/posix_acl_xattr.h: a version, then entries of tag, permissions and id.
const LIST_HEADER_BYTES = 4;
const LIST_ENTRY_BYTES = 8;
const TAG_USER = 0x02;
const TAG_GROUP = 0x08;

// linux/capability.h: revision 3 is revision 2 with the id of the user namespace's root behind it.
const REVISION_MASK = 0xff000000;
const REVISION_3 = 0x03000000;
const ROOT_ID_OFFSET = 20;

/** Those of a file whose ids begin at `idBase` on the host, with the ids that they have inside. Capabilities are among them in any case. */
export function shiftedXattrs(path: Uint8Array, idBase: number): Xattr[] {
  const found: Xattr[] = [];
  for (const name of ACCESS_LISTS) {
    const value = findXattr(path, name);
    if (value) found.push({ name, value: shiftAccessList(value, idBase) });
  }
  const capability = findXattr(path, CAPABILITY);
  if (capability) found.push({ name: CAPABILITY, value: shiftCapability(capability, idBase) });
  return found;
}

export function shiftAccessList(list: Buffer, idBase: number): Buffer {
  const shifted = Buffer.from(list);
  for (let at = LIST_HEADER_BYTES; at + LIST_ENTRY_BYTES <= shifted.length; at += LIST_ENTRY_BYTES) {
    const tag = shifted.readUInt16LE(at);
    if (tag !== TAG_USER && tag !== TAG_GROUP) continue;
    shifted.writeUInt32LE(inside(shifted.readUInt32LE(at + 4), idBase), at + 4);
  }
  return shifted;
}

export function shiftCapability(capability: Buffer, idBase: number): Buffer {
  const shifted = Buffer.from(capability);
  if (shifted.length < ROOT_ID_OFFSET + 4 || (shifted.readUInt32LE(0) & REVISION_MASK) >>> 0 !== REVISION_3) return shifted;
  shifted.writeUInt32LE(inside(shifted.readUInt32LE(ROOT_ID_OFFSET), idBase), ROOT_ID_OFFSET);
  return shifted;
}

function inside(id: number, idBase: number): number {
  return Math.max(0, id - idBase);
}
