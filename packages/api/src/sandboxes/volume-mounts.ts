import type { VolumeMount } from "@skerry/store";
import { publicError } from "../errors.ts";
import { inheritMounts, invalidMounts, resolveMounts } from "../volumes/mounts.ts";
import type { CreateRequest } from "./create-sandbox.ts";
import type { SandboxDeps } from "./deps.ts";

/** The mounts of a new sandbox, and the only node that has its volumes. Throws for volumes that cannot be mounted together. */
export async function mountsOf(
  { store }: Pick<SandboxDeps, "store">,
  { by, template: { template, build }, volumeMounts }: Pick<CreateRequest, "by" | "template" | "volumeMounts">,
): Promise<{ readonly mounts: readonly VolumeMount[]; readonly volumesNodeId: string | undefined }> {
  if (volumeMounts === undefined) {
    // A snapshot may be public. Its volumes are not.
    const inherited = template.teamId === by.teamId ? (build.volumeMounts ?? []) : [];
    return { mounts: await inheritMounts(store.volumes, by.teamId, inherited), volumesNodeId: undefined };
  }
  const found = await resolveMounts(store.volumes, by.teamId, volumeMounts);
  const mounts = found.map(({ volumeId, name, path }) => ({ volumeId, name, path }));
  const [nodeId, ...others] = [...new Set(found.map((mount) => mount.nodeId))];
  if (others.length > 0) throw invalidMounts(["the volumes are on different machines"]);
  if (nodeId !== undefined && build.image && build.image.nodeId !== nodeId) {
    throw publicError("capacity_unavailable", "Failed to place sandbox: its snapshot and its volumes are on different machines", {
      detailCode: "sandbox_no_compatible_node",
    });
  }
  return { mounts, volumesNodeId: nodeId };
}
