// Content types by file extension, or else by the first bytes. This is enough for a browser that opens a file of a sandbox.

const BY_EXTENSION: Readonly<Record<string, string>> = {
  ".avif": "image/avif",
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".gz": "application/gzip",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".tar": "application/x-tar",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webp": "image/webp",
  ".xml": "text/xml; charset=utf-8",
  ".zip": "application/zip",
};

const MAGIC: readonly (readonly [prefix: string, type: string])[] = [
  ["%PDF-", "application/pdf"],
  ["\x89PNG\r\n\x1a\n", "image/png"],
  ["GIF87a", "image/gif"],
  ["GIF89a", "image/gif"],
  ["\xff\xd8\xff", "image/jpeg"],
  ["PK\x03\x04", "application/zip"],
  ["\x1f\x8b\x08", "application/x-gzip"],
  ["\x00asm", "application/wasm"],
];

/** Number of bytes that `sniffType` reads. */
export const SNIFF_BYTES = 512;

export function typeByExtension(name: string): string | undefined {
  const dot = name.lastIndexOf(".");
  return dot === -1 ? undefined : BY_EXTENSION[name.slice(dot).toLowerCase()];
}

export function sniffType(head: Uint8Array): string {
  const text = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, SNIFF_BYTES)).toString("latin1");
  const known = MAGIC.find(([prefix]) => text.startsWith(prefix));
  if (known) return known[1];
  if (/^\s*<(?:!doctype html|html|head|body|script)[\s>]/i.test(text)) return "text/html; charset=utf-8";
  if (/^\s*<\?xml/.test(text)) return "text/xml; charset=utf-8";
  // Text does not contain these control characters.
  return [...text].some(isBinary) ? "application/octet-stream" : "text/plain; charset=utf-8";
}

function isBinary(character: string): boolean {
  const code = character.charCodeAt(0);
  return code <= 0x08 || code === 0x0b || (code >= 0x0e && code <= 0x1a) || (code >= 0x1c && code <= 0x1f);
}
