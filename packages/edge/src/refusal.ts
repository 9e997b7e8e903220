import type { Target } from "@skerry/wire";

/** What a browser is shown instead of the JSON. `detail` is plain text and gets escaped. */
export interface Page {
  readonly title: string;
  readonly detail: string;
}

/** An answer that the edge gives by itself. Clients match on the texts, so they are part of the interface. */
export type Refusal =
  | { readonly kind: "text"; readonly status: number; readonly text: string }
  | { readonly kind: "json"; readonly status: number; readonly body: Readonly<Record<string, unknown>>; readonly page: Page };

export function badRequest(text: string): Refusal {
  return { kind: "text", status: 400, text };
}

/** The edge knows the sandbox but cannot get to it, or cannot ask where it is. */
export function unroutable(): Refusal {
  return { kind: "text", status: 502, text: "Failed to route request to sandbox" };
}

/** Unknown, killed, or paused. SDKs look for "was not found" to tell a dead sandbox from a failing one. */
export function sandboxNotFound(target: Target): Refusal {
  return {
    kind: "json",
    status: 502,
    body: { sandboxId: target.sandboxId, message: "The sandbox was not found", code: 502 },
    page: {
      title: "Sandbox Not Found",
      detail: `The sandbox ${target.sandboxId} was not found. It may have been killed, or reached the end of its life.`,
    },
  };
}

/** The sandbox runs; its server does not answer on that port, or broke off before it answered. */
export function portClosed(target: Target): Refusal {
  return {
    kind: "json",
    status: 502,
    body: { sandboxId: target.sandboxId, message: "The sandbox is running but port is not open", port: target.port, code: 502 },
    page: {
      title: "Closed Port Error",
      detail: `The sandbox ${target.sandboxId} is running, but there is no service running on port ${target.port}.`,
    },
  };
}

export function reservedPath(path: string): Refusal {
  return {
    kind: "json",
    status: 404,
    body: {
      message: "This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL",
      path,
      code: 404,
    },
    page: { title: "Endpoint Not Available", detail: `The path ${path} is reserved for the platform itself.` },
  };
}
