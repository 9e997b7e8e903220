import { create } from "@bufbuild/protobuf";
import { ProcessSelectorSchema } from "@skerry/wire/process";
import { expect, it, vi } from "vitest";
import { Reaper } from "../../native/reaper.ts";
import type { GuestProcess } from "./guest-process.ts";
import { ProcessTable } from "./table.ts";

const processOf = (pid: number, tag: string) => ({ pid, identity: { tag }, exited: () => {} }) as unknown as GuestProcess;
const byTag = (tag: string) => create(ProcessSelectorSchema, { selector: { case: "tag", value: tag } });
const byPid = (pid: number) => create(ProcessSelectorSchema, { selector: { case: "pid", value: pid } });

it("keeps a process that has got the pid of one whose output goes on after its end", () => {
  const table = new ProcessTable(new Reaper());
  const [former, latter] = [processOf(7, "former"), processOf(7, "latter")];
  table.add(former);
  table.add(latter);
  table.retire(former);
  expect(table.findLive(byPid(7))).toBe(latter);
  expect(table.list()).toEqual([latter]);
  table.retire(latter);
  expect(table.findLiveOrEnded(byPid(7))).toBe(latter);
  expect(table.list()).toEqual([]);
});

it("keeps one that has ended for 30 s, unless a new one takes over its pid or its tag", () => {
  vi.useFakeTimers();
  try {
    const table = new ProcessTable(new Reaper());
    const end = (pid: number, tag: string) => {
      const process = processOf(pid, tag);
      table.add(process);
      table.retire(process);
      return process;
    };
    const kept = end(7, "kept");
    end(8, "pid taken");
    end(9, "tag taken");
    table.add(processOf(8, "other"));
    table.add(processOf(10, "tag taken"));
    expect(() => table.findLiveOrEnded(byTag("pid taken"))).toThrow("process with tag pid taken not found");
    expect(() => table.findLiveOrEnded(byPid(9))).toThrow("process with pid 9 not found");
    vi.advanceTimersByTime(29_999);
    expect(table.findLiveOrEnded(byPid(7))).toBe(kept);
    expect(() => table.findLive(byPid(7))).toThrow("process with pid 7 not found");
    vi.advanceTimersByTime(1);
    expect(() => table.findLiveOrEnded(byPid(7))).toThrow("process with pid 7 not found");
  } finally {
    vi.useRealTimers();
  }
});
