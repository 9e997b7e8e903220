import type { Target } from "@skerry/wire";
import {
  cannotWakeNow,
  invalidSignature,
  portClosed,
  type Refusal,
  sandboxLimitReached,
  sandboxNotFound,
  stillTransitioning,
  unroutable,
  wakeDenied,
} from "../answers/refusal.ts";
import type { DialErrorCode } from "../errors.ts";
import type { RouteAnswer } from "../ports.ts";

/** What a client is told when its request does not reach the sandbox. */
export interface UpstreamRefusals {
  forRoute(answer: Exclude<RouteAnswer, { kind: "running" }>): Refusal;
  forDial(code: DialErrorCode): Refusal;
}

/** For clients that named the sandbox. */
export function refusalsNaming(target: Target): UpstreamRefusals {
  return {
    forRoute(answer) {
      switch (answer.kind) {
        case "absent":
          return sandboxNotFound(target, answer.absence);
        case "denied":
          return wakeDenied(target);
        case "transitioning":
          return stillTransitioning(target);
        case "limited":
          return sandboxLimitReached(target, answer.message);
        case "busy":
          return cannotWakeNow(target);
      }
    },
    forDial(code) {
      switch (code) {
        case "sandbox_gone":
          return sandboxNotFound(target);
        case "port_closed":
          return portClosed(target);
        case "node_unreachable":
          return unroutable();
      }
    },
  };
}

/**
 * For clients that sent a signature only. An id gives access to the public ports of its sandbox, so it is never shown to them.
 * A sandbox that does not run is answered like a signature that no sandbox made.
 */
export const ANONYMOUS_REFUSALS: UpstreamRefusals = {
  forRoute: invalidSignature,
  forDial: (code) => (code === "sandbox_gone" ? invalidSignature() : unroutable()),
};
