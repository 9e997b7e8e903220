// Takes the certificates of the operator's site out of what a build step wrote. The agent adds them to the trust store of every sandbox, and
// no layer may have them: a layer outlives the operator's settings, and others may get it.

import { lstatSync, readdirSync, readFileSync, rmdirSync, rmSync, type Stats, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findXattr } from "@skerry/base/linux";
import { TRUST_STORES, withoutSiteCertificates } from "@skerry/wire";

/** The agent changes no larger store. */
const MAX_STORE_BYTES = 10 * 1024 * 1024;
/** On a directory: nothing of the layers below shows through. */
const OPAQUE = "trusted.overlay.opaque";

export interface StepFiles {
  /** What the step wrote. Nothing of its sandbox runs any more. */
  readonly upper: string;
  /** Directories of the layers below, lowest first. */
  readonly layers: readonly string[];
  /** Host id of root in the sandbox. */
  readonly idBase: number;
}

/** A store that is the one of the layers afterwards goes, with the directories that only led to it. */
export function removeSiteCertificates(files: StepFiles): void {
  for (const store of TRUST_STORES) {
    const name = store.slice(1);
    const path = join(files.upper, name);
    const about = findFile(files.upper, name);
    if (!about?.isFile() || about.size > MAX_STORE_BYTES) continue;
    const text = readFileSync(path, "latin1");
    const rest = withoutSiteCertificates(text);
    if (rest === text) continue;
    if (isOfLayers(files, { name, rest, about })) removeWithParents(files, name);
    else {
      writeFileSync(path, rest, "latin1");
      utimesSync(path, about.atime, about.mtime);
    }
  }
}

function isOfLayers({ layers, idBase }: StepFiles, { name, rest, about }: { name: string; rest: string; about: Stats }): boolean {
  const below = findBelow(layers, name);
  return below?.about.isFile() === true && isAlike(about, below.about, idBase) && readFileSync(below.path, "latin1") === rest;
}

function removeWithParents({ upper, layers, idBase }: StepFiles, name: string): void {
  rmSync(join(upper, name));
  for (let parent = dirname(name); parent !== "."; parent = dirname(parent)) {
    const path = join(upper, parent);
    const below = findBelow(layers, parent);
    if (readdirSync(path).length > 0 || isOpaque(path) || !below || !isAlike(lstatSync(path), below.about, idBase)) return;
    rmdirSync(path);
  }
}

function isAlike(above: Stats, below: Stats, idBase: number): boolean {
  return above.mode === below.mode && above.uid - idBase === below.uid && above.gid - idBase === below.gid;
}

/** What the layers show under this name; undefined for nothing, and where a link or a hidden directory leads elsewhere. */
function findBelow(layers: readonly string[], name: string): { path: string; about: Stats } | undefined {
  for (const layer of layers.toReversed()) {
    const about = findFile(layer, name);
    if (about) return { path: join(layer, name), about };
    if (isHidden(layer, name)) return undefined;
  }
  return undefined;
}

/** Whether this layer hides what lower ones have under the name: by a link, a file or a mark in the place of a parent. */
function isHidden(root: string, name: string): boolean {
  let path = root;
  for (const part of name.split("/").slice(0, -1)) {
    path = join(path, part);
    const about = lstatSync(path, { throwIfNoEntry: false });
    if (about === undefined) return false;
    if (!about.isDirectory() || isOpaque(path)) return true;
  }
  return false;
}

/** The entry of this name, if only directories lead to it: a link of a hostile guest is never followed. */
function findFile(root: string, name: string): Stats | undefined {
  const parts = name.split("/");
  let path = root;
  for (const [index, part] of parts.entries()) {
    path = join(path, part);
    const about = lstatSync(path, { throwIfNoEntry: false });
    if (index === parts.length - 1) return about;
    if (!about?.isDirectory()) return undefined;
  }
  return undefined;
}

function isOpaque(path: string): boolean {
  return findXattr(Buffer.from(path), OPAQUE) !== undefined;
}
