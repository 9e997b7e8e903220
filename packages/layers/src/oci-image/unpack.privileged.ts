import { chmod, mkdtemp, readFile, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { PlatformError, runCommand, SubprocessError } from "@skerry/base";
import { parseOciManifest } from "./manifest.ts";
import { type PulledOciImage, tooLarge } from "./pull.privileged.ts";
import type { UnpackAnswer, UnpackRequest } from "./unpack-program.privileged.ts";

const UNPACK_TIMEOUT_MS = 900_000;
/** Bounds the inodes that an image takes, and what the program remembers of each file. */
const MAX_ENTRIES = 3_000_000;
const MAX_HEAP_MB = 2_048;
const REPOSITORY = join(import.meta.dirname, "../../../..");

/**
 * Runs the program where nothing can be written but the tree that it makes. The mounts are of a namespace of their own, and end with it. The
 * process has no network, and of root's capabilities those that give files their owners and modes. It makes the tree its root directory
 * before it reads the first byte of a layer.
 */
const ENTER = `set -eu
jail=$1 layout=$2 target=$3 node=$4 repository=$5
shift 5
mount -t tmpfs -o mode=755,size=1m tmpfs "$jail"
cd "$jail"
show() {
  mkdir "$2"
  mount --bind "$1" "$2"
  mount -o remount,bind,ro "$2"
}
for name in usr bin sbin lib lib64; do
  if [ -L "/$name" ]; then
    cp -P "/$name" "$name"
  elif [ -d "/$name" ]; then
    show "/$name" "$name"
  fi
done
mkdir proc tree
mount -t proc proc proc
show "$layout" layout
show "$node" node
show "$repository" repository
mount --bind "$target" tree
exec chroot . setpriv --no-new-privs --inh-caps=-all \\
  --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+setfcap,+sys_chroot "$@"
`;

/** What an image became. */
export interface UnpackedOciImage {
  readonly bytes: number;
  readonly entries: number;
}

/**
 * Unpacks all layers of an OCI image into the empty directory `target`, one over the other: whiteouts are obeyed, and owners, modes,
 * times, hard links and extended attributes are kept. The layers are as hostile as their maker: nothing of theirs gets out of it. Throws
 * PlatformError("oci_image_too_large") as soon as the layers are larger than `maxBytes`.
 */
export async function unpackOciImage(
  image: Pick<PulledOciImage, "reference" | "layoutDir">,
  options: { readonly target: string; readonly maxBytes?: number | undefined; readonly signal?: AbortSignal },
): Promise<UnpackedOciImage> {
  const { target, maxBytes = Number.MAX_SAFE_INTEGER, signal } = options;
  const files = await layerFiles(image.layoutDir);
  const jail = await mkdtemp(join(tmpdir(), "skerry-unpack-"));
  try {
    // What it stays when no layer says anything else of the root.
    await chmod(target, 0o755);
    const answer = await runProgram(
      { jail, layoutDir: image.layoutDir, target },
      { files, target: "/tree", maxBytes, maxEntries: MAX_ENTRIES },
      signal,
    );
    if (answer.kind === "unpacked") return { bytes: answer.bytes, entries: answer.entries };
    if (answer.kind === "too-large") throw tooLarge("exceeds the limit", maxBytes);
    if (answer.kind === "unusable") throw unusable(image.reference, answer.why);
    throw new Error(`OCI image ${image.reference}: its layers can't be unpacked: ${answer.why}`);
  } finally {
    await rmdir(jail);
  }
}

async function runProgram(
  dirs: { readonly jail: string; readonly layoutDir: string; readonly target: string },
  request: UnpackRequest,
  signal: AbortSignal | undefined,
): Promise<UnpackAnswer> {
  const program = join("/repository", relative(REPOSITORY, join(import.meta.dirname, "unpack-program.privileged.ts")));
  const node = [
    `/node/${basename(process.execPath)}`,
    `--max-old-space-size=${MAX_HEAP_MB}`,
    "--no-warnings",
    program,
    JSON.stringify(request),
  ];
  const script = ["sh", "-c", ENTER, "sh", dirs.jail, dirs.layoutDir, dirs.target, dirname(process.execPath), REPOSITORY, ...node];
  try {
    const { stdout } = await runCommand("unshare", ["--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", ...script], {
      timeoutMs: UNPACK_TIMEOUT_MS,
      ...(signal && { signal }),
    });
    return JSON.parse(stdout) as UnpackAnswer;
  } catch (error) {
    signal?.throwIfAborted();
    const why = error instanceof SubprocessError ? error.stderr.trim().split("\n").slice(-5).join(" ") : String(error);
    return { kind: "failed", why: why.slice(0, 500) };
  }
}

/** As skopeo wrote them: layers in Zstandard were packed anew. */
async function layerFiles(layoutDir: string): Promise<string[]> {
  const { manifests } = JSON.parse(await readFile(join(layoutDir, "index.json"), "utf8")) as { manifests: readonly [{ digest: string }] };
  const blob = (digest: string) => `blobs/${digest.replace(":", "/")}`;
  const manifest = parseOciManifest(await readFile(join(layoutDir, blob(manifests[0].digest)), "utf8"));
  if (manifest.kind !== "image") throw new Error("skopeo wrote an index of images");
  return manifest.layers.map(({ digest }) => join("/layout", blob(digest)));
}

function unusable(reference: string, why: string): PlatformError {
  const publicMessage = `OCI image ${reference}: its layers can't be unpacked`;
  return new PlatformError("oci_image_unusable", `${publicMessage}: ${why.slice(0, 500)}`, { publicMessage });
}
