export type LayersErrorCode =
  | "area_id_invalid"
  | "area_missing"
  | "archive_invalid"
  | "disk_file_in_use"
  | "disk_space_unavailable"
  | "layer_chain_too_long"
  | "layer_damaged"
  | "layer_digest_invalid"
  | "layer_holder_invalid"
  | "layer_missing"
  | "links_not_kept"
  | "oci_image_access_denied"
  | "oci_image_damaged"
  | "oci_image_forbidden"
  | "oci_image_not_found"
  | "oci_image_pull_failed"
  | "oci_image_reference_invalid"
  | "oci_image_too_large"
  | "oci_image_unusable"
  | "oci_image_wrong_architecture"
  | "oci_repository_missing"
  | "registry_blocked"
  | "registry_busy"
  | "registry_status"
  | "registry_unreachable"
  | "registry_untrusted"
  | "root_read_only"
  | "tree_not_packable";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly layers: LayersErrorCode;
  }
}
