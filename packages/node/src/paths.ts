import { join } from "node:path";

/** The files of a container, beside its area. */
export interface ContainerPaths {
  readonly dir: string;
  readonly record: string;
  readonly bundle: string;
  readonly root: string;
  /** Mount points of its volumes, for a runtime with a user namespace. */
  readonly volumes: string;
}

export interface ImagePaths {
  readonly dir: string;
  readonly record: string;
  readonly memory: string;
}

export interface NodePaths {
  readonly sandboxes: string;
  readonly images: string;
  /** Disk areas: the files that sandboxes write, and frozen areas below other sandboxes. */
  readonly areas: string;
  /** Copies of damaged records of containers. While there are any, no area counts as unused. */
  readonly damaged: string;
  /** Folders whose files are to be deleted. */
  readonly trash: string;
  readonly userns: string;
  readonly network: string;
  readonly volumes: string;
  /** Names the folder of volumes that the last start used, if that was another one. */
  readonly volumesFolder: string;
  /** Disk space that is released on a full disk. */
  readonly reserve: string;
  /** What sandboxes reached, from the end of a process to the next start. */
  readonly egress: string;
  /** What their processes wrote, in the same way. */
  readonly output: string;
  /** The record of the cluster that the sandboxes belong to. */
  readonly cluster: string;
  container(id: string): ContainerPaths;
  image(id: string): ImagePaths;
}

/** The layout of the node's folder. */
export function nodePaths(dir: string): NodePaths {
  const below = (folder: string, id: string) => join(dir, folder, id);
  return {
    sandboxes: join(dir, "sandboxes"),
    images: join(dir, "images"),
    areas: join(dir, "areas"),
    damaged: join(dir, "damaged"),
    trash: join(dir, "trash"),
    userns: join(dir, "userns"),
    network: join(dir, "network.json"),
    volumes: join(dir, "volumes"),
    volumesFolder: join(dir, "volumes-folder"),
    reserve: join(dir, "reserve"),
    egress: join(dir, "egress.json"),
    output: join(dir, "output.json"),
    cluster: join(dir, "cluster.json"),
    container(id) {
      const own = below("sandboxes", id);
      return {
        dir: own,
        record: join(own, "sandbox.json"),
        bundle: join(own, "bundle"),
        root: join(own, "root"),
        volumes: join(own, "volumes"),
      };
    },
    image(id) {
      const own = below("images", id);
      return { dir: own, record: join(own, "image.json"), memory: join(own, "memory") };
    },
  };
}
