import { join } from "node:path";

/** What a running (or half-made) sandbox has on disk beside its area. */
export interface ContainerPaths {
  readonly dir: string;
  readonly record: string;
  readonly bundle: string;
  readonly root: string;
}

export interface ImagePaths {
  readonly dir: string;
  readonly record: string;
  readonly memory: string;
}

export interface NodePaths {
  readonly sandboxes: string;
  readonly images: string;
  /** Disk areas: what sandboxes write, and what others lie on. */
  readonly areas: string;
  /** Records of containers that could not be read. As long as there are any, no area counts as a stray one. */
  readonly damaged: string;
  /** What waits for its files to be deleted. */
  readonly trash: string;
  readonly userns: string;
  readonly network: string;
  /** Room that is given up on a full disk. */
  readonly reserve: string;
  /** Whose sandboxes these are. */
  readonly cluster: string;
  container(id: string): ContainerPaths;
  image(id: string): ImagePaths;
}

/** Where the node keeps what, below its own folder. */
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
    reserve: join(dir, "reserve"),
    cluster: join(dir, "cluster.json"),
    container(id) {
      const own = below("sandboxes", id);
      return { dir: own, record: join(own, "sandbox.json"), bundle: join(own, "bundle"), root: join(own, "root") };
    },
    image(id) {
      const own = below("images", id);
      return { dir: own, record: join(own, "image.json"), memory: join(own, "memory") };
    },
  };
}
