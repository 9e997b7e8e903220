export { exportLayer, importLayer } from "./archive/layer-archive.privileged.ts";
export { packTree } from "./archive/pack-tree.privileged.ts";
export { unpackTree } from "./archive/unpack-tree.privileged.ts";
export { newAreaId } from "./area/area-id.ts";
export { type ChosenDiskLimit, chooseDiskLimit, type DiskLimitSetting } from "./area/choose-disk-limit.privileged.ts";
export { cleanUpper } from "./area/clean-upper.privileged.ts";
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
export {
  DiskFileMaker,
  isMountPoint,
  mountDiskFile,
  removeDiskFile,
  syncDiskFile,
  unmountDiskFile,
} from "./area/disk-file.privileged.ts";
export { assertFreeSpace, reserveBytesOf } from "./area/free-space.ts";
export { flattenLayers, mergedBytes, mergeUppers } from "./area/merge-uppers.privileged.ts";
export { hasSplitLinks, linkUp } from "./hard-links.privileged.ts";
export type { OciImageConfig } from "./oci-image/config.ts";
export {
  describeOciImage,
  type OciImage,
  type PulledOciImage,
  type PullOptions,
  pullOciImage,
  type RegistryOptions,
  type ResolvedOciImage,
  resolveOciImage,
} from "./oci-image/pull.privileged.ts";
export { formatOciImageReference, type OciImageReference, parseOciImageReference } from "./oci-image/reference.ts";
export type { RegistryCredentials, RegistrySettings } from "./oci-image/skopeo.privileged.ts";
export { unpackOciImage } from "./oci-image/unpack.privileged.ts";
export {
  assertMountable,
  type HardLinks,
  mountRootFilesystem,
  type RootMount,
  removeRootFilesystem,
  unmountRootFilesystem,
} from "./root-mount.privileged.ts";
export { type LayerDigest, parseLayerDigest } from "./store/layer-digest.ts";
export { type LayerStore, openLayerStore } from "./store/layer-store.privileged.ts";
