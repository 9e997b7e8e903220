import { asError, errnoOf, PlatformError } from "@skerry/base";

export interface Listener {
  /** Who listens, for the message. */
  readonly what: string;
  readonly host: string;
  readonly port: number;
  /** The setting that names the port, with its option where `./skerry up` has one. */
  readonly setting: string;
}

/** Runs `listen`. Throws PlatformError("config_invalid") that names the setting, where its address can't be had. */
export async function listening<T>({ what, host, port, setting }: Listener, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen();
  } catch (error) {
    const why = { EADDRINUSE: "something else does already", EADDRNOTAVAIL: "this machine has no such address" }[errnoOf(error) ?? ""];
    if (why === undefined) throw error;
    const mend = errnoOf(error) === "EADDRINUSE" ? setting : "SKERRY_LISTEN, --listen";
    throw new PlatformError("config_invalid", `${what} can't listen on ${host}, port ${port}: ${why} (${mend})`, { cause: asError(error) });
  }
}
