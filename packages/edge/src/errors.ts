/** Why a dial failed. Any other error counts as `node_unreachable`. */
export type DialErrorCode = "sandbox_gone" | "port_closed" | "node_unreachable";

declare module "@skerry/base/error" {
  interface ErrorCodes {
    readonly edge: DialErrorCode;
  }
}
