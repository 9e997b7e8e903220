// `Uint8Array.prototype.toBase64` and `setFromBase64` (ECMAScript 2026) on top of Buffer, because this Node.js does not have them yet.
// The Protobuf library uses them if they exist. Its own code takes milliseconds for each 32 KiB of process output in JSON.

interface ToBase64Options {
  readonly alphabet?: "base64" | "base64url";
  readonly omitPadding?: boolean;
}

const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function toBase64(bytes: Uint8Array, options: ToBase64Options = {}): string {
  const url = options.alphabet === "base64url";
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(url ? "base64url" : "base64");
  if (options.omitPadding) return url ? text : text.replace(/=+$/, "");
  return url ? text.padEnd(Math.ceil(text.length / 4) * 4, "=") : text;
}

/** Accepts the standard alphabet with padding. Throws SyntaxError for any other text, and for data that does not fit into `bytes`. */
export function setFromBase64(bytes: Uint8Array, text: string): { read: number; written: number } {
  const decoded = STRICT.test(text) ? Buffer.from(text, "base64") : undefined;
  if (!decoded || decoded.length > bytes.length) throw new SyntaxError("not strict base64 of that size");
  bytes.set(decoded);
  return { read: text.length, written: decoded.length };
}

/** Adds the missing methods for this process. Preconditions: the Protobuf library is not loaded yet. */
export function installFastBase64(): void {
  const add = (name: string, value: (this: Uint8Array, ...rest: never[]) => unknown) => {
    if (!(name in Uint8Array.prototype)) Object.defineProperty(Uint8Array.prototype, name, { value, configurable: true, writable: true });
  };
  add("toBase64", function (this: Uint8Array, options?: ToBase64Options) {
    return toBase64(this, options);
  });
  add("setFromBase64", function (this: Uint8Array, text: string) {
    return setFromBase64(this, text);
  });
}
