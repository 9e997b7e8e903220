import type { OciSpec } from "./oci.ts";

/** The specification for an image: without the paths of this host. `moveSpec` puts in those of the host that restores it. */
export function withoutPlace({ hooks: _hooks, annotations: _annotations, ...spec }: OciSpec): OciSpec {
  return {
    ...spec,
    root: { ...spec.root, path: "" },
    mounts: spec.mounts.map((mount) => (mount.type === "bind" ? { ...mount, source: "" } : mount)),
    linux: {
      ...spec.linux,
      namespaces: spec.linux.namespaces.map(({ path: _path, ...one }) => one),
      cgroupsPath: "",
    },
  };
}

/**
 * The specification for a restore: the one that the sandbox ran with, with the paths and limits of the new start. gVisor accepts no other
 * changes, so an image stays usable when the platform changes its specification.
 */
export function moveSpec(ran: OciSpec, now: OciSpec): OciSpec {
  const sources = new Map(now.mounts.map((mount) => [mount.destination, mount.source]));
  const networkPath = now.linux.namespaces.find(({ type }) => type === "network")?.path;
  const { hooks: _hooks, annotations: _annotations, ...rest } = ran;
  return {
    ...rest,
    ...(now.hooks ? { hooks: now.hooks } : {}),
    ...(now.annotations ? { annotations: now.annotations } : {}),
    root: now.root,
    mounts: ran.mounts.map((mount) => ({ ...mount, source: sources.get(mount.destination) ?? mount.source })),
    linux: {
      ...ran.linux,
      namespaces: ran.linux.namespaces.map((one) =>
        one.type === "network" && networkPath !== undefined ? { ...one, path: networkPath } : one,
      ),
      cgroupsPath: now.linux.cgroupsPath,
      resources: now.linux.resources,
    },
  };
}
