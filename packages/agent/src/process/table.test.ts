import { create } from "@bufbuild/protobuf";
import { ProcessSelectorSchema } from "@skerry/wire/process";
import { expect, it } from "vitest";
import { Reaper } from "../native/reaper.ts";
import type { GuestProcess } from "./guest-process.ts";
import { ProcessTable } from "./table.ts";

const processOf = (pid: number, tag: string) => ({ pid, identity: { tag }, exited: () => {} }) as unknown as GuestProcess;
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
