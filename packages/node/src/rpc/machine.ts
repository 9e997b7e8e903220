import { readFile, statfs } from "node:fs/promises";
import { arch, cpus, freemem, totalmem } from "node:os";

/** The facts about this machine that an operator sees. */
export interface MachineFacts {
  readonly cpuFamily: string;
  readonly cpuModel: string;
  readonly cpuModelName: string;
  readonly cpuArchitecture: string;
  readonly cpuPercent: number;
  readonly memoryUsedBytes: bigint;
  readonly diskUsedBytes: bigint;
  readonly diskTotalBytes: bigint;
  readonly diskFolder: string;
}

interface CpuTimes {
  readonly busy: number;
  readonly all: number;
}

/** Reads the facts about this machine. The CPU usage is that since the reading before. */
export class Machine {
  readonly #folder: string;
  #before: CpuTimes = { busy: 0, all: 0 };
  constructor(folder: string) {
    this.#folder = folder;
  }

  async read(): Promise<MachineFacts> {
    const disk = await statfs(this.#folder, { bigint: true });
    const about = cpuFacts(await readFile("/proc/cpuinfo", "utf8"));
    return {
      ...about,
      cpuArchitecture: arch(),
      cpuPercent: this.#cpuPercent(),
      memoryUsedBytes: BigInt(totalmem() - freemem()),
      diskUsedBytes: (disk.blocks - disk.bfree) * disk.bsize,
      diskTotalBytes: disk.blocks * disk.bsize,
      diskFolder: this.#folder,
    };
  }

  #cpuPercent(): number {
    const now = sumOf(cpus().map(({ times }) => times));
    const { busy, all } = this.#before;
    if (now.all > all) this.#before = now;
    return now.all > all ? Math.min(100, Math.max(0, Math.round(((now.busy - busy) / (now.all - all)) * 10_000) / 100)) : 0;
  }
}

/** The family, model and name of the first CPU. Processors that are not x86 have none of them. */
export function cpuFacts(cpuinfo: string): Pick<MachineFacts, "cpuFamily" | "cpuModel" | "cpuModelName"> {
  const read = (name: string) => new RegExp(`^${name}[ \\t]*: *(.*)$`, "m").exec(cpuinfo)?.[1] ?? "";
  return { cpuFamily: read("cpu family"), cpuModel: read("model"), cpuModelName: read("model name") };
}

function sumOf(times: readonly { user: number; nice: number; sys: number; idle: number; irq: number }[]): CpuTimes {
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0);
  return { busy, all: busy + times.reduce((sum, { idle }) => sum + idle, 0) };
}
