import type { Intercept } from "../egress/tls-traffic.ts";
import type { Interceptions } from "./interceptions.ts";

/** Takes over the connections that the egress proxy has found to be for a host of a header rule. */
export function interceptTls(interceptions: Interceptions): Intercept {
  return ({ sandbox, socket, original, name, open }) => {
    const address = socket.remoteAddress?.replace(/^::ffff:/, "") ?? "";
    if (name === undefined || !interceptions.isFor(address, name)) return false;
    const onRefused = () => sandbox.refused({ protocol: "tls", name, ...original }, "header_rule");
    void interceptions.take({ client: socket, address, host: name, dial: open, onRefused });
    return true;
  };
}
