import type { Logger } from "@skerry/base";
import { MemoryGroup } from "@skerry/runtime";
import type { Containers, LiveContainer } from "../containers/containers.ts";
import type { HostDeps } from "../containers/host.privileged.ts";
import { DiskGuard, type DiskGuardOptions, type DiskUser } from "../limits/disk-guard.ts";
import { floorBytesOf } from "./disk-full.privileged.ts";
import type { DiskReserve } from "./disk-reserve.privileged.ts";
import { readDiskSpace, readUnwrittenBytes } from "./disk-space.privileged.ts";

export interface DiskGuardDeps extends Pick<DiskGuardOptions, "onShort"> {
  readonly deps: HostDeps;
  readonly containers: Containers;
  readonly reserve: DiskReserve;
  readonly logger: Logger;
}

/** Starts the guard of the disk that the node's folder is on. */
export function startDiskGuard({ deps, containers, reserve, onShort, logger }: DiskGuardDeps): DiskGuard {
  const { areas, config } = deps;
  const guard = new DiskGuard({
    space: () => readDiskSpace(config.dir),
    unwrittenBytes: readUnwrittenBytes,
    reserve,
    floorBytes: floorBytesOf,
    users: () =>
      containers
        .all()
        .filter(({ record, build }) => record.state === "running" || (build && !build.isCommitting))
        .map((live) => userOf(live, (area) => areas.hostBytes(area))),
    onShort,
    logger,
  });
  guard.start();
  return guard;
}

function userOf({ record }: LiveContainer, hostBytes: (area: string) => Promise<number | undefined>): DiskUser {
  return {
    key: record.containerId,
    sandboxId: record.sandboxId,
    areaBytes: () => hostBytes(record.area),
    unwrittenBytes: () => {
      const group = MemoryGroup.open(record.cgroupPath);
      try {
        return group.unwrittenBytes();
      } finally {
        group.close();
      }
    },
  };
}
