// Chooses the encoding of a download: gzip or identity.

export type Encoding = "gzip" | "identity";

export class NotAcceptableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotAcceptableError";
  }
}

interface Offer {
  readonly name: string;
  readonly quality: number;
}

export interface EncodingNeeds {
  /** The request has a range or a condition. These refer to the file's own bytes, so only identity is possible. */
  readonly isConditional?: boolean;
  /** Choose identity if the client accepts it at all. */
  readonly prefersIdentity?: boolean;
}

export function negotiateEncoding(
  header: string | undefined,
  { isConditional = false, prefersIdentity = false }: EncodingNeeds = {},
): Encoding {
  const offers = parseOffers(header ?? "");
  const identityRejected = rejectsIdentity(offers);
  if (isConditional) {
    if (identityRejected) throw new NotAcceptableError("identity encoding not acceptable for Range or conditional request");
    return "identity";
  }
  if (prefersIdentity && !identityRejected) return "identity";
  for (const { name } of offers.filter((offer) => offer.quality > 0)) {
    if (name === "gzip" || name === "identity") return name;
    if (name === "*") return identityRejected ? "gzip" : "identity";
  }
  if (identityRejected) throw new NotAcceptableError("error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]");
  return "identity";
}

function rejectsIdentity(offers: readonly Offer[]): boolean {
  const identity = offers.filter((offer) => offer.name === "identity");
  if (identity.some((offer) => offer.quality === 0)) return true;
  return offers.some((offer) => offer.name === "*" && offer.quality === 0) && !identity.some((offer) => offer.quality > 0);
}

// Sorted by quality, best first. Equal ones keep the order of the header.
function parseOffers(header: string): readonly Offer[] {
  return header
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "")
    .map(parseOffer)
    .sort((a, b) => b.quality - a.quality);
}

function parseOffer(item: string): Offer {
  const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
  const text = parameters.find((parameter) => /^q=/i.test(parameter))?.slice(2);
  const quality = text !== undefined && /^\d+(\.\d*)?$|^\.\d+$/.test(text) ? Number(text) : 1;
  return { name: name.toLowerCase(), quality };
}
