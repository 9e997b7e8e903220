import { decodeStatus } from "@skerry/base/posix-spawn";
import { describe, expect, it } from "vitest";
import { endFields } from "./exit-status.ts";

describe("endFields", () => {
  it.each([
    [0x0000, { exitCode: 0, exited: true, status: "exit status 0" }],
    [0x0300, { exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" }],
    [0xff00, { exitCode: 255, exited: true, status: "exit status 255", error: "exit status 255" }],
    [9, { exitCode: -1, exited: false, status: "signal: killed", error: "signal: killed" }],
    [15, { exitCode: -1, exited: false, status: "signal: terminated", error: "signal: terminated" }],
    [2, { exitCode: -1, exited: false, status: "signal: interrupt", error: "signal: interrupt" }],
    [11, { exitCode: -1, exited: false, status: "signal: segmentation fault", error: "signal: segmentation fault" }],
    [
      11 | 0x80,
      {
        exitCode: -1,
        exited: false,
        status: "signal: segmentation fault (core dumped)",
        error: "signal: segmentation fault (core dumped)",
      },
    ],
    [40, { exitCode: -1, exited: false, status: "signal: signal 40", error: "signal: signal 40" }],
  ])("describes the wait status %i", (word, expected) => {
    expect(endFields(decodeStatus(word))).toEqual(expected);
  });
});
