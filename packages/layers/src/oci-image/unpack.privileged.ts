import { chmod, mkdtemp, readdir, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlatformError, runCommand, SubprocessError } from "@skerry/base";
import { listXattrs, removeXattr } from "@skerry/base/linux";
import { IMAGE_TAG, type PulledOciImage } from "./pull.privileged.ts";

const UNPACK_TIMEOUT_MS = 900_000;

/**
 * Runs umoci where nothing can be written but the tree that it makes: it follows no link out of that, but a layer with a
 * whiteout named `..` makes the versions in use remove the directory above (tried with 0.4.7). The mounts are of a
 * namespace of their own, and end with it.
 */
const ENTER = `set -eu
jail=$1 layout=$2 target=$3
mount -t tmpfs -o mode=755,size=1m tmpfs "$jail"
cd "$jail"
for name in usr bin sbin lib lib64; do
  if [ -L "/$name" ]; then
    cp -P "/$name" "$name"
  elif [ -d "/$name" ]; then
    mkdir "$name"
    mount --bind "/$name" "$name"
    mount -o remount,bind,ro "$name"
  fi
done
mkdir proc layout tree
mount -t proc proc proc
mount --bind "$layout" layout
mount -o remount,bind,ro layout
mount --bind "$target" tree
exec chroot . umoci raw unpack --image "/layout:$4" /tree
`;

/**
 * Unpacks all layers of an OCI image into the empty directory `target`, one over the other: whiteouts are obeyed, and owners, modes,
 * times, hard links and extended attributes are kept. The layers are as hostile as their maker: nothing of theirs gets out of it.
 */
export async function unpackOciImage(
  image: PulledOciImage,
  options: { readonly target: string; readonly signal?: AbortSignal },
): Promise<void> {
  const { target, signal } = options;
  const jail = await mkdtemp(join(tmpdir(), "skerry-unpack-"));
  try {
    // What it stays when no layer says anything else of the root.
    await chmod(target, 0o755);
    const script = ["sh", "-c", ENTER, "sh", jail, image.layoutDir, target, IMAGE_TAG];
    await runCommand("unshare", ["--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", ...script], {
      timeoutMs: UNPACK_TIMEOUT_MS,
      ...(signal && { signal }),
    });
  } catch (cause) {
    signal?.throwIfAborted();
    const detail = cause instanceof SubprocessError ? cause.stderr.trim().split("\n").at(-1) : String(cause);
    throw unusable(image.reference, "its layers can't be unpacked", detail?.slice(0, 500) ?? "", cause);
  } finally {
    await rmdir(jail);
  }
  await removeDangerous({ path: target, reference: image.reference, signal });
}

/** What overlayfs would act on, instead of showing it. */
const OVERLAY_XATTR = /^(trusted|user)\.overlay\./;

/**
 * Takes away what is not content: device nodes, of which a sandbox gets its own, and the attributes by which overlayfs marks
 * its layers: with them an image could point at what another layer hides.
 */
async function removeDangerous(tree: { path: string; reference: string; signal: AbortSignal | undefined }): Promise<void> {
  const { path, reference, signal } = tree;
  signal?.throwIfAborted();
  for (const name of listXattrs(path)) if (OVERLAY_XATTR.test(name)) removeXattr(path, name);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    // A name is text everywhere in this platform; what is none would be decoded to something else.
    if (entry.name.includes("\uFFFD")) throw unusable(reference, "it has a file name that is not UTF-8", `in ${path}`);
    const inside = join(path, entry.name);
    if (entry.isDirectory()) await removeDangerous({ ...tree, path: inside });
    else if (entry.isBlockDevice() || entry.isCharacterDevice()) await rm(inside);
    else for (const name of listXattrs(inside)) if (OVERLAY_XATTR.test(name)) removeXattr(inside, name);
  }
}

function unusable(reference: string, why: string, detail: string, cause?: unknown): PlatformError {
  const publicMessage = `OCI image ${reference}: ${why}`;
  return new PlatformError("oci_image_unusable", `${publicMessage}: ${detail}`, { publicMessage, cause });
}
