export { newAreaId } from "./area/area-id.ts";
export { type ChosenDiskLimit, chooseDiskLimit, type DiskLimitSetting } from "./area/choose-disk-limit.privileged.ts";
export { copyTree } from "./area/copy-tree.privileged.ts";
export { walkTrees } from "./area/descent.privileged.ts";
export {
  type DiskArea,
  type DiskAreas,
  type DiskAreasOptions,
  type DiskLimit,
  type NewArea,
  openDiskAreas,
} from "./area/disk-areas.privileged.ts";
export { reserveBytesOf } from "./area/free-space.ts";
export { mergedBytes, mergeUppers } from "./area/merge-uppers.privileged.ts";
export { hasSplitLinks, linkUp } from "./hard-links.privileged.ts";
export type { ImageConfig } from "./image/image-config.ts";
export { formatImageReference, type ImageReference, parseImageReference } from "./image/image-reference.ts";
export { type PulledImage, type PullOptions, pullImage } from "./image/pull-image.privileged.ts";
export type { RegistryCredentials } from "./image/skopeo.privileged.ts";
export { unpackImage } from "./image/unpack-image.privileged.ts";
export {
  assertMountable,
  type HardLinks,
  mountRootFilesystem,
  type RootMount,
  removeRootFilesystem,
  unmountRootFilesystem,
} from "./root-mount.privileged.ts";
export { type LayerDigest, type LayerStore, openLayerStore, parseLayerDigest } from "./store.privileged.ts";
