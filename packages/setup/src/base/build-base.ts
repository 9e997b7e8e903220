import { mkdir, rm } from "node:fs/promises";
import { asError } from "@skerry/base";
import type { OciImageReference } from "@skerry/layers";
import type { Report } from "../steps.ts";
import { applyRecipe } from "./apply-recipe.privileged.ts";
import { type Distribution, detectDistribution } from "./distribution.ts";
import { fillFromArchive } from "./from-archive.ts";
import { fillFromImage, type ImageOrigin } from "./from-image.privileged.ts";
import { openTree } from "./tree.privileged.ts";

export interface BuildBaseOptions {
  /** Returns an empty directory for the template's root file system. */
  newTarget(): Promise<string>;
  /** Removes a directory of a build that failed. */
  dropTarget(target: string): Promise<void>;
  /** A private directory for temporary files. It is removed at the end. */
  readonly setupDir: string;
  readonly image: OciImageReference | undefined;
  readonly nodeBinary: string;
  readonly npmDir: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

export interface ArchiveOrigin {
  readonly from: "archive";
  /** Why the wanted OCI image was not used. */
  readonly imageFailure?: string;
}

export type BaseOrigin = ImageOrigin | ArchiveOrigin;

export interface BuiltBase {
  readonly target: string;
  readonly origin: BaseOrigin;
  readonly distribution: Distribution;
}

/** Builds the root file system of the base template from the OCI image if possible, or else from the package archive. */
export async function buildBase(options: BuildBaseOptions): Promise<BuiltBase> {
  const { image, report, signal } = options;
  if (image === undefined) return await withTarget(options, (target) => fromArchive(options, target, undefined));
  try {
    return await withTarget(options, (target) => fromImage(options, image, target));
  } catch (error) {
    signal.throwIfAborted();
    const imageFailure = asError(error).message;
    report(`the image can't be used: ${imageFailure}`);
    return await withTarget(options, (target) => fromArchive(options, target, imageFailure));
  }
}

async function withTarget(options: BuildBaseOptions, work: (target: string) => Promise<BuiltBase>): Promise<BuiltBase> {
  const { setupDir, newTarget, dropTarget } = options;
  const target = await newTarget();
  try {
    await rm(setupDir, { recursive: true, force: true });
    await mkdir(setupDir, { mode: 0o755 });
    return await work(target);
  } catch (error) {
    await dropTarget(target);
    throw error;
  } finally {
    await rm(setupDir, { recursive: true, force: true });
  }
}

async function fromImage(options: BuildBaseOptions, image: OciImageReference, target: string): Promise<BuiltBase> {
  const { setupDir, report, signal } = options;
  const tree = openTree({ root: target, setupDir, signal });
  const { origin, distribution } = await fillFromImage({ image, target, tree, setupDir, report, signal });
  report("adding the user, Node.js and the profile");
  await applyRecipe({ ...options, tree, distribution });
  return { target, origin, distribution };
}

async function fromArchive(options: BuildBaseOptions, target: string, imageFailure: string | undefined): Promise<BuiltBase> {
  const { setupDir, report, signal } = options;
  const distribution = await detectDistribution();
  report("unpacking the distribution (half a minute)");
  await fillFromArchive({ target, setupDir, distribution, signal });
  report("adding the user, Node.js and the profile");
  await applyRecipe({ ...options, tree: openTree({ root: target, setupDir, signal }), distribution });
  return { target, origin: { from: "archive", ...(imageFailure !== undefined && { imageFailure }) }, distribution };
}
