import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { responseOn } from "./answers/response-on.ts";
import { sendRefusal } from "./answers/send-refusal.ts";
import { failConnection } from "./connections/fail-connection.ts";
import { forward } from "./forwarding/forward.ts";
import { forwardUpgrade } from "./forwarding/forward-upgrade.ts";
import type { KeptUpstreams } from "./forwarding/kept-upstream.ts";
import { type AdmitDeps, admit } from "./routing/admit.ts";
import type { Opened, Upstream } from "./routing/open-upstream.ts";
import type { RequestHead } from "./routing/route-request.ts";
import type { Sender } from "./signatures/client-address.ts";

export interface ServeDeps extends AdmitDeps {
  readonly clientAddressOf: (req: Sender) => string;
  readonly isSecure: (req: Sender) => boolean;
  readonly kept: KeptUpstreams;
}

export interface Limits {
  readonly maxHeaderBytes: number;
}

/** Made once: an abort without a reason makes an exception with a stack, for every request. */
const LEFT = new Error("the client has gone, or has the whole response");

export async function serveRequest(
  deps: ServeDeps,
  limits: Limits,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
): Promise<void> {
  const gone = new AbortController();
  res.on("error", () => {});
  res.once("close", () => gone.abort(LEFT));
  const admission = await admit(deps, headOf(deps, req), gone.signal, mayUseKept(req, res) ? deps.kept.of(req.socket) : undefined);
  if (admission.kind === "refused") return sendRefusal(req, res, admission.refusal);
  const { target, path, prefix, framing, explainBreak } = admission;
  const onFault = (error: unknown) => failConnection(deps.logger, req.socket, error);
  const exchange = { req, res, path, prefix, framing, maxHeaderBytes: limits.maxHeaderBytes, onFault };
  const explain = async (err: Error) => {
    deps.logger.info({ err, sandbox_id: target.sandboxId, port: target.port }, "the sandbox closed the connection before it responded");
    sendRefusal(req, res, await explainBreak());
  };
  const send = ({ stream: upstream, maskedHost, keep, reopen }: Opened) => {
    if (gone.signal.aborted) {
      upstream.destroy();
      return;
    }
    let isOver = false;
    const onBroken = (err: Error, isSilent: boolean) => {
      if (isOver) return;
      isOver = true;
      (reopen && isSilent ? sendAgain(reopen) : explain(err)).catch(onFault);
    };
    forward({ ...exchange, upstream, maskedHost, keep, onBroken });
  };
  // The server may close a kept connection at the moment at which the next request is sent.
  const sendAgain = async (reopen: () => Promise<Upstream>) => {
    const opened = await reopen();
    if (opened.kind === "open") send(opened);
    else sendRefusal(req, res, opened.refusal);
  };
  send({ ...admission, kind: "open", stream: admission.upstream });
}

/** Only requests that may be sent twice, and not the last one of the client. */
function mayUseKept(req: IncomingMessage, res: ServerResponse): boolean {
  return (req.method === "GET" || req.method === "HEAD") && req.headers.expect === undefined && res.shouldKeepAlive;
}

export async function serveUpgrade(
  deps: ServeDeps,
  limits: Limits,
  { req, client, clientHead }: { req: IncomingMessage; client: Duplex; clientHead: Buffer },
): Promise<void> {
  const gone = new AbortController();
  client.on("error", () => {});
  client.once("close", () => gone.abort(LEFT));
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
