export { mountRootFilesystem, type RootMount, unmountRootFilesystem } from "./root-mount.privileged.ts";
export { type LayerDigest, type LayerStore, openLayerStore, parseLayerDigest } from "./store.privileged.ts";
