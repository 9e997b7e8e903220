import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { responseOn } from "./answers/response-on.ts";
import { sendRefusal } from "./answers/send-refusal.ts";
import { failConnection } from "./connections/fail-connection.ts";
import { forward } from "./forwarding/forward.ts";
import { forwardUpgrade } from "./forwarding/forward-upgrade.ts";
import { type AdmitDeps, admit } from "./routing/admit.ts";
import type { RequestHead } from "./routing/route-request.ts";

export interface ServeDeps extends AdmitDeps {
  readonly clientAddressOf: (req: IncomingMessage) => string;
  readonly isSecure: (req: IncomingMessage) => boolean;
}

export interface Limits {
  readonly maxHeaderBytes: number;
}

export async function serveRequest(
  deps: ServeDeps,
  limits: Limits,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
): Promise<void> {
  const gone = new AbortController();
  res.on("error", () => {});
  res.once("close", () => gone.abort());
  const admission = await admit(deps, headOf(deps, req), gone.signal);
  if (admission.kind === "refused") return sendRefusal(req, res, admission.refusal);
  const { target, path, prefix, framing, maskedHost, upstream, explainBreak } = admission;
  if (gone.signal.aborted) {
    upstream.destroy();
    return;
  }
  let explained = false;
  const onFault = (error: unknown) => failConnection(deps.logger, req.socket, error);
  const onBroken = (err: Error) => {
    if (explained) return;
    explained = true;
    deps.logger.info({ err, sandbox_id: target.sandboxId, port: target.port }, "the sandbox closed the connection before it responded");
    explainBreak()
      .then((refusal) => sendRefusal(req, res, refusal))
      .catch(onFault);
  };
  forward({ req, res, upstream, path, prefix, framing, maskedHost, maxHeaderBytes: limits.maxHeaderBytes, onBroken, onFault });
}

export async function serveUpgrade(
  deps: ServeDeps,
  limits: Limits,
  { req, client, clientHead }: { req: IncomingMessage; client: Duplex; clientHead: Buffer },
): Promise<void> {
  const gone = new AbortController();
  client.on("error", () => {});
  client.once("close", () => gone.abort());
  const admission = await admit(deps, headOf(deps, req), gone.signal);
  if (client.destroyed) {
    if (admission.kind === "admitted") admission.upstream.destroy();
    return;
  }
  if (admission.kind === "refused") return sendRefusal(req, responseOn(req, client), admission.refusal);
  const { target, path, prefix, maskedHost, upstream, explainBreak } = admission;
  const onFault = (error: unknown) => failConnection(deps.logger, client, error);
  const onBroken = (err: Error) => {
    deps.logger.info({ err, sandbox_id: target.sandboxId, port: target.port }, "the sandbox closed the connection before it responded");
    explainBreak()
      .then((refusal) => {
        if (!client.destroyed) sendRefusal(req, responseOn(req, client), refusal);
      })
      .catch(onFault);
  };
  forwardUpgrade({ req, client, clientHead, upstream, path, prefix, maskedHost, maxHeaderBytes: limits.maxHeaderBytes, onBroken, onFault });
}

/** Refuses CONNECT: clients reach sandboxes by name, not by address. */
export function refuseConnect(req: IncomingMessage, client: Duplex): void {
  client.on("error", () => {});
  sendRefusal(req, responseOn(req, client), { kind: "text", status: 405, text: "Method not allowed" });
}

function headOf(deps: ServeDeps, req: IncomingMessage): RequestHead {
  const clientAddress = () => deps.clientAddressOf(req);
  return { method: req.method ?? "", url: req.url ?? "", rawHeaders: req.rawHeaders, clientAddress, isSecure: () => deps.isSecure(req) };
}
