// Names in archives and file systems are bytes. Here they are strings with one character per byte (latin1), which can be split, compared and
// used as keys. Only `native` and `shown` turn them into something else.

export type BytePath = string;

export function bytePath(text: string): BytePath {
  return isAscii(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

/** For a system call. Node.js would write a string as UTF-8. */
export function native(path: BytePath): string | Buffer {
  return isAscii(path) ? path : Buffer.from(path, "latin1");
}

const MOST_SHOWN = 200;

/** For a message: as UTF-8, without control characters, and not too long. */
export function shown(path: BytePath): string {
  const text = Buffer.from(path, "latin1").toString("utf8");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a log.
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
  return clean.length > MOST_SHOWN ? `${clean.slice(0, MOST_SHOWN)}…` : clean;
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole range of ASCII.
  return /^[\u0000-\u007f]*$/.test(text);
}
