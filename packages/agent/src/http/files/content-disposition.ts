// A MIME token (RFC 2045). Unlike an HTTP token it may contain braces.
const TOKEN = /^[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+$/;

/** `inline` with the file's base name, in the simplest form that can represent the name. */
export function inlineDisposition(name: string): string {
  if (TOKEN.test(name)) return `inline; filename=${name}`;
  if (/^[\x20-\x7e]*$/.test(name)) return `inline; filename="${name.replace(/["\\]/g, "\\$&")}"`;
  return `inline; filename*=utf-8''${percentEncode(name)}`;
}

// Keeps the characters that RFC 5987 calls attr-char, and encodes all other bytes.
function percentEncode(text: string): string {
  return [...Buffer.from(text, "utf8")]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[A-Za-z0-9!#$&+\-.^_`{|}~]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}
