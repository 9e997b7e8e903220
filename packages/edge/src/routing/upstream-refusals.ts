import type { Target } from "@skerry/wire";
import {
  cannotWakeNow,
  invalidSignature,
  portClosed,
  type Refusal,
  sandboxLimitReached,
  sandboxNotFound,
  stillTransitioning,
  tooMuchTraffic,
  trafficTokenRequired,
  unroutable,
  wakeDenied,
} from "../answers/refusal.ts";
import type { Excess } from "../connections/traffic-limits.ts";
import type { DialErrorCode } from "../errors.ts";
import type { TokenFault } from "../ingress/traffic-token.ts";
import { type LinkFault, refusalFor } from "../links/enter.ts";
import type { RouteAnswer } from "../ports.ts";

/** The responses for a client whose request does not reach the sandbox. */
export interface UpstreamRefusals {
  forRoute(answer: Exclude<RouteAnswer, { kind: "running" }>): Refusal;
  forDial(code: DialErrorCode): Refusal;
  forToken(fault: TokenFault): Refusal;
  forLink(fault: LinkFault): Refusal;
  forExcess(excess: Excess): Refusal;
}

/** For requests that name the sandbox. */
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
    forToken: (fault) => trafficTokenRequired(target, fault),
    forLink: (fault) => refusalFor(target, fault),
    forExcess: (excess) => tooMuchTraffic(excess, target.sandboxId),
  };
}

/**
 * For requests with only a signature. They must not reveal the sandbox's id, which gives access to its public ports. A sandbox that
 * does not run gets the same response as an unknown signature.
 */
export const ANONYMOUS_REFUSALS: UpstreamRefusals = {
  forRoute: invalidSignature,
  forDial: (code) => (code === "sandbox_gone" ? invalidSignature() : unroutable()),
  forToken: invalidSignature,
  forLink: invalidSignature,
  forExcess: (excess) => tooMuchTraffic(excess),
};
