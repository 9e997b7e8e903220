export type { ImageConfig } from "./image/image-config.ts";
export { formatImageReference, type ImageReference, parseImageReference } from "./image/image-reference.ts";
export { type PulledImage, type PullOptions, pullImage } from "./image/pull-image.privileged.ts";
export type { RegistryCredentials } from "./image/skopeo.privileged.ts";
export { unpackImage } from "./image/unpack-image.privileged.ts";
export { mountRootFilesystem, type RootMount, unmountRootFilesystem } from "./root-mount.privileged.ts";
export { type LayerDigest, type LayerStore, openLayerStore, parseLayerDigest } from "./store.privileged.ts";
