// Removes secrets from texts that leave the host. Two ways together: the values that this host knows are replaced wherever they occur, in
// every form in which they may be written; and so is whatever has the form of a secret, because a log can contain secrets of others.

export const MARK = "[removed]";

/** Shorter values would be found in words that are no secrets. */
const SHORTEST = 6;

/** A name whose value is a secret. */
const SECRET_NAME = String.raw`[\w-]*(?:api[_-]?key|token|secret|passw(?:or)?d|authorization|cookie|credential|signature|private[_-]?key|seed|encryption[_-]?key)[\w-]*`;

const FORMS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // Keys and tokens of the platform, of invitations, webhooks and links.
  [/\b(sk_e2b_|e2b_|skerry_admin_|whsec_|inv_)[A-Za-z0-9+/%=_-]{6,}/g, `$1${MARK}`],
  [/\b(lnk_[a-z0-9]{20})\.[A-Za-z0-9_-]{43}/g, `$1.${MARK}`],
  // Keys in PEM.
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MARK],
  // User and password of a URL, also of one in JSON or percent-encoded.
  [/(\b[a-z][a-z0-9+.-]*:(?:\\?\/){2})[^\s/@"'\\<>]+(?::[^\s@"'<>]*)?@/gi, `$1${MARK}@`],
  [/(\b[a-z][a-z0-9+.-]*%3a%2f%2f)[^\s&"']+?%40/gi, `$1${MARK}%40`],
  [/\b(Bearer|Basic|Digest)\s+[A-Za-z0-9._~+/=:-]{6,}/gi, `$1 ${MARK}`],
  // "name": "value", also escaped inside of another JSON text; name=value and name: value.
  [new RegExp(String.raw`(\\*"${SECRET_NAME}\\*"\s*:\s*\\*")(?:[^"\\]|\\(?!")[^"])*`, "gi"), `$1${MARK}`],
  [new RegExp(String.raw`((?:^|[\s?&;,{'"])${SECRET_NAME}\s*[=:]\s*)(?!\[removed\])[^\s"'&;,{}]+`, "gim"), `$1${MARK}`],
  // JSON web tokens, and long hex numbers that are no digest: tokens of sandboxes, keys.
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, MARK],
  [/(?<!sha256:|sha512:|[0-9a-f])[0-9a-f]{40,}(?![0-9a-f])/gi, MARK],
];

export class Scrubber {
  readonly #values: readonly string[];

  /** `secrets`: the values that are known, in clear. */
  constructor(secrets: Iterable<string>) {
    const forms = new Set<string>();
    for (const secret of secrets) for (const form of formsOf(secret.trim())) if (form.length >= SHORTEST) forms.add(form);
    // The longest first, so that no rest of one stays.
    this.#values = [...forms].sort((a, b) => b.length - a.length);
  }

  scrub(text: string): string {
    let scrubbed = text;
    for (const value of this.#values) scrubbed = scrubbed.replaceAll(value, MARK);
    for (const [pattern, replacement] of FORMS) scrubbed = scrubbed.replace(pattern, replacement);
    return scrubbed;
  }
}

/** The ways in which a value may be written. */
function formsOf(secret: string): readonly string[] {
  const bare = secret.replace(/^(sk_e2b_|e2b_|skerry_admin_|whsec_)/, "");
  return [secret, bare].flatMap((text) => [
    text,
    encodeURIComponent(text),
    encodeURI(text),
    escaped(text),
    escaped(escaped(text)),
    Buffer.from(text).toString("base64"),
    Buffer.from(text).toString("base64").replace(/=+$/, ""),
    Buffer.from(text).toString("hex"),
    text.toLowerCase(),
  ]);
}

/** As in a text of JSON. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The secret parts of a URL: user and password, as written and decoded. */
export function secretsInUrl(text: string): readonly string[] {
  const url = URL.parse(text);
  if (!url) return text.includes("@") ? [text] : [];
  const parts = [url.password, `${url.username}:${url.password}`].filter((part) => part !== "" && part !== ":");
  return [...parts, ...parts.flatMap(decoded), ...(url.password === "" ? [] : [text])];
}

function decoded(text: string): readonly string[] {
  try {
    return [decodeURIComponent(text)];
  } catch {
    return [];
  }
}
