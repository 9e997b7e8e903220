import { expect } from "vitest";
import { callApi } from "../e2e/client.ts";

/** A line as the API shows it. */
export interface ShownLine {
  readonly verdict: "allowed" | "refused";
  readonly rule: string;
  readonly protocol: string;
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly count: number;
}

export interface ShownCounts {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  readonly refused: number;
}

/** Waits until the egress log of a sandbox is as expected: lines arrive within seconds. */
export async function egressOf(
  platform: Parameters<typeof callApi>[0],
  id: string,
  check: (lines: readonly ShownLine[], totals: ShownCounts) => void,
): Promise<void> {
  await expect
    .poll(
      async () => {
        const { body } = await callApi(platform, `/sandboxes/${id}/egress`);
        const { lines, totals } = body as { lines: ShownLine[]; totals: ShownCounts };
        return outcomeOf(() => check(lines, totals), { lines, totals });
      },
      { timeout: 60_000, interval: 500 },
    )
    .toBe("as expected");
}

function outcomeOf(check: () => void, about: object): string {
  try {
    check();
    return "as expected";
  } catch (error) {
    return `${String(error)}\n${JSON.stringify(about, undefined, 1)}`;
  }
}
