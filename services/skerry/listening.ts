import { asError, errnoOf, PlatformError } from "@skerry/base";

export interface Listener {
  /** The listener's name, for the message. */
  readonly what: string;
  readonly host: string;
  readonly port: number;
  /** The setting of the port, with the option of `./skerry up` if there is one. */
  readonly setting: string;
}

/** Runs `listen`. Throws PlatformError("config_invalid"), which names the setting, if the address is not available. */
export async function listening<T>({ what, host, port, setting }: Listener, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    const why = { EADDRINUSE: "the port is in use", EADDRNOTAVAIL: "this host has no such address" }[errnoOf(error) ?? ""];
    if (why === undefined) throw error;
    const change = errnoOf(error) === "EADDRINUSE" ? setting : "SKERRY_LISTEN, --listen";
    throw new PlatformError("config_invalid", `${what} can't listen on ${host}, port ${port}: ${why}; change ${change}`, {
      cause: asError(error),
    });
  }
}
