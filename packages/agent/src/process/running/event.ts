import type { EndFields } from "./exit-status.ts";

export type OutputStream = "stdout" | "stderr" | "pty";

export type ProcessEvent =
  | { readonly case: "start"; readonly value: { readonly pid: number } }
  | { readonly case: "data"; readonly value: { readonly output: { readonly case: OutputStream; readonly value: Uint8Array<ArrayBuffer> } } }
  | { readonly case: "end"; readonly value: EndFields }
  | { readonly case: "keepalive"; readonly value: Record<never, never> };
