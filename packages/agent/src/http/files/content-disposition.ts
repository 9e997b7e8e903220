// A token of MIME (RFC 2045), which unlike HTTP's takes braces.
const TOKEN = /^[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+$/;

/** `inline` with the file's base name, in the plainest form that can carry it. */
export function inlineDisposition(name: string): string {
  if (TOKEN.test(name)) return `inline; filename=${name}`;
  if (/^[\x20-\x7e]*$/.test(name)) return `inline; filename="${name.replace(/["\\]/g, "\\$&")}"`;
  return `inline; filename*=utf-8''${percentEncode(name)}`;
}

// RFC 5987 attr-char; everything else byte by byte.
function percentEncode(text: string): string {
  return [...Buffer.from(text, "utf8")]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9!#$&+\-.^_`{|}~]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}
