import { Code, ConnectError } from "@connectrpc/connect";
import type { ProcessSelector } from "@skerry/wire/process";
import type { Reaper } from "../../native/reaper.ts";
import type { GuestProcess } from "./guest-process.ts";

const RETENTION_MS = 30_000;

/** The processes that this agent started: live ones, and for a while those that ended, so that a late Connect learns how. */
export class ProcessTable {
  // In order of start; on equal tags the newest wins.
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

  /** Called by a process that is over, before it tells its followers. */
  retire(process: GuestProcess): void {
    const { pid } = process;
    // Its program may have ended long ago, with a child that kept its output open; the pid can be another one's by now.
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

  // A new process takes over its pid and its tag.
  #forgetEnded(fresh: GuestProcess): void {
    for (const [pid, record] of this.#ended) {
      const sameTag = fresh.identity.tag !== undefined && record.process.identity.tag === fresh.identity.tag;
      if (pid !== fresh.pid && !sameTag) continue;
      clearTimeout(record.timer);
      this.#ended.delete(pid);
    }
  }
}
