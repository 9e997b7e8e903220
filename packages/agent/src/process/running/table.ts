import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessSelector } from "@skerry/wire/process";
import type { Reaper } from "../../native/reaper.ts";
import type { GuestProcess } from "./guest-process.ts";

/** How long Connect still finds an ended process, as the specification has it. */
const RETENTION_MS = 30_000;

/** The processes that the agent started: live ones, and for RETENTION_MS those that ended, so that a late Connect learns how. */
export class ProcessTable {
  // In order of start. Of several processes with one tag, the newest is found.
  readonly #live = new Map<number, GuestProcess>();
  readonly #ended = new Map<number, { process: GuestProcess; timer: NodeJS.Timeout }>();
  readonly #reaper: Reaper;

  constructor(reaper: Reaper) {
    this.#reaper = reaper;
  }

  add(process: GuestProcess): void {
    this.#forgetEnded(process);
    this.#live.set(process.pid, process);
    this.#reaper.watch(process.pid, (status) => process.exited(status));
  }

  /** Called by a process that has ended, before its followers are told. */
  retire(process: GuestProcess): void {
    const { pid } = process;
    // The program may have exited long ago, while a child kept its output open. By now another process can have its pid.
    if (this.#live.get(pid) !== process) return;
    this.#live.delete(pid);
    const timer = setTimeout(() => this.#ended.delete(pid), RETENTION_MS);
    timer.unref();
    this.#ended.set(pid, { process, timer });
  }

  list(): readonly GuestProcess[] {
    this.#reaper.poll();
    return [...this.#live.values()];
  }

  findLive(selector: ProcessSelector | undefined): GuestProcess {
    this.#reaper.poll();
    return this.#find(selector, [...this.#live.values()]);
  }

  findLiveOrEnded(selector: ProcessSelector | undefined): GuestProcess {
    this.#reaper.poll();
    return this.#find(selector, [...[...this.#ended.values()].map((record) => record.process), ...this.#live.values()]);
  }

  #find(selector: ProcessSelector | undefined, candidates: readonly GuestProcess[]): GuestProcess {
    const wanted = selector?.selector;
    switch (wanted?.case) {
      case "pid": {
        const found = candidates.findLast((process) => process.pid === wanted.value);
        if (!found) throw new ConnectError(`process with pid ${wanted.value} not found`, Code.NotFound);
        return found;
      }
      case "tag": {
        const found = candidates.findLast((process) => process.identity.tag === wanted.value);
        if (!found) throw new ConnectError(`process with tag ${wanted.value} not found`, Code.NotFound);
        return found;
      }
      default:
        throw new ConnectError("invalid input type: a process is selected by pid or tag", Code.Unimplemented);
    }
  }

  // A new process replaces the ended ones with its pid or its tag.
  #forgetEnded(fresh: GuestProcess): void {
    for (const [pid, record] of this.#ended) {
      const sameTag = fresh.identity.tag !== undefined && record.process.identity.tag === fresh.identity.tag;
      if (pid !== fresh.pid && !sameTag) continue;
      clearTimeout(record.timer);
      this.#ended.delete(pid);
    }
  }
}
