import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { constants, gzipSync, zstdCompressSync } from "node:zlib";

export interface TestImage {
  /** Layers as tar archives, lowest first. */
  readonly layers: readonly Uint8Array[];
  /** The fields of an OCI image configuration: Env, User, WorkingDir, Entrypoint, Cmd, Labels. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** CPU architecture in the terms of OCI. Default: that of this machine. */
  readonly architecture?: string;
  readonly compression?: "gzip" | "zstd";
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** Writes OCI images to an OCI layout directory. Several images become one index, of which a client takes the image for its CPU. */
export async function writeOciLayout(dir: string, images: readonly TestImage[]): Promise<void> {
  await mkdir(join(dir, "blobs/sha256"), { recursive: true });
  const put = async (mediaType: string, content: Uint8Array): Promise<Descriptor> => {
    const digest = sha256(content);
    await writeFile(join(dir, "blobs/sha256", digest), content);
    return { mediaType, digest: `sha256:${digest}`, size: content.byteLength };
  };
  const manifests = await Promise.all(images.map((image) => putImage(image, put)));
  const [first, ...others] = manifests;
  if (first === undefined) throw new Error("no image to write");
  const index = { schemaVersion: 2, mediaType: INDEX, manifests };
  const top = others.length === 0 ? index : { schemaVersion: 2, manifests: [await put(INDEX, json(index))] };
  await writeFile(join(dir, "index.json"), json(top));
  await writeFile(join(dir, "oci-layout"), json({ imageLayoutVersion: "1.0.0" }));
}

type Put = (mediaType: string, content: Uint8Array) => Promise<Descriptor>;

async function putImage(image: TestImage, put: Put): Promise<Descriptor & { readonly platform: object }> {
  const architecture = image.architecture ?? ARCHITECTURES[process.arch] ?? "unknown";
  const compression = image.compression ?? "gzip";
  const pack = (layer: Uint8Array) =>
    compression === "zstd" ? zstdCompressSync(layer) : gzipSync(layer, { level: constants.Z_BEST_SPEED });
  const layers = await Promise.all(image.layers.map((layer) => put(`application/vnd.oci.image.layer.v1.tar+${compression}`, pack(layer))));
  const config = await put(
    "application/vnd.oci.image.config.v1+json",
    json({
      architecture,
      os: "linux",
      config: image.config ?? {},
      // buildah refuses an image whose history does not account for its layers.
      history: image.layers.map(() => ({ created_by: "a test" })),
      rootfs: { type: "layers", diff_ids: image.layers.map((layer) => `sha256:${sha256(layer)}`) },
    }),
  );
  const manifest = await put(MANIFEST, json({ schemaVersion: 2, mediaType: MANIFEST, config, layers }));
  return { ...manifest, platform: { architecture, os: "linux" } };
}

const sha256 = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
