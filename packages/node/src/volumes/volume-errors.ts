import { errnoOf, PlatformError, type PlatformErrorCode } from "@skerry/base";

interface Meaning {
  readonly code: PlatformErrorCode;
  readonly message: string;
}

const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOENT: { code: "entry_missing", message: "there is no such file or directory in the volume" },
  ENOTDIR: { code: "not_a_directory", message: "a part of the path is not a directory" },
  EEXIST: { code: "entry_exists", message: "the path exists already" },
  EISDIR: { code: "is_a_directory", message: "the path is a directory" },
  ENOSPC: { code: "volume_full", message: "the volume has no room" },
  EXDEV: { code: "path_invalid", message: "the path leads out of the volume" },
  ELOOP: { code: "path_invalid", message: "the path has too many symbolic links" },
  ENAMETOOLONG: { code: "path_invalid", message: "the path, or a part of it, is too long" },
  EINVAL: { code: "path_invalid", message: "the path has a name that the volume can't store" },
  // Its file system was shut down: the volume was deleted while the operation ran.
  EIO: { code: "volume_missing", message: "the volume was deleted, or its disk fails" },
};

/** Runs an operation on the files of a volume, and turns the errors of the system into those of the node. */
export async function withVolumeErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw volumeErrorOf(error);
  }
}

/** No cause: an errno there would be taken for one of the host's data disk. */
export function volumeErrorOf(error: unknown): unknown {
  const meaning = MEANINGS[errnoOf(error) ?? ""];
  return meaning ? volumeError(meaning.code, meaning.message) : error;
}

/** The message is for callers. */
export function volumeError(code: PlatformErrorCode, message: string): PlatformError {
  return new PlatformError(code, message, { publicMessage: message });
}
