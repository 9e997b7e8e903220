// The answers to questions for allowed names. They are made from what the resolver says about the name, and contain nothing else of its
// message. Only addresses that a sandbox may reach at all are passed on.

import type { Answer, Question, RecordType } from "dns-packet";
import { isClosedToAll } from "./closed-addresses.ts";
import type { NameLookup } from "./name-lookup.ts";

/** For records whose time to live the resolver does not tell. */
const TTL_SECONDS = 60;

export type DnsResult =
  | { readonly kind: "answers"; readonly answers: readonly Answer[] }
  | { readonly kind: "no_such_name" }
  | { readonly kind: "failed" }
  /** The name exists, and all its addresses are closed to sandboxes. */
  | { readonly kind: "closed"; readonly address: string };

/**
 * Types that are not listed have no records here: there is no IPv6, and `HTTPS` records would have clients hide the name of their server
 * (encrypted client hello).
 */
const ANSWERS: Partial<Record<RecordType, (lookup: NameLookup, asked: string, question: Question) => Promise<Answer[]>>> = {
  TXT: async ({ resolver }, asked, { name }) =>
    (await resolver.resolveTxt(asked)).map((data) => ({ type: "TXT", name, ttl: TTL_SECONDS, data })),
  MX: async ({ resolver }, asked, { name }) =>
    (await resolver.resolveMx(asked)).map(({ exchange, priority }) => {
      return { type: "MX", name, ttl: TTL_SECONDS, data: { exchange, preference: priority } };
    }),
  SRV: async ({ resolver }, asked, { name }) =>
    (await resolver.resolveSrv(asked)).map(({ name: target, port, priority, weight }) => {
      return { type: "SRV", name, ttl: TTL_SECONDS, data: { target, port, priority, weight } };
    }),
  CNAME: async ({ resolver }, asked, { name }) =>
    (await resolver.resolveCname(asked)).map((data) => ({ type: "CNAME", name, ttl: TTL_SECONDS, data })),
  NS: async ({ resolver }, asked, { name }) =>
    (await resolver.resolveNs(asked)).map((data) => ({ type: "NS", name, ttl: TTL_SECONDS, data })),
};

/** `asked` is the name of the question in its plain form. The answers have the spelling of the question. */
export async function answerTo(lookup: NameLookup, asked: string, question: Question): Promise<DnsResult> {
  try {
    if (question.type === "A") return await addressesFor(lookup, asked, question);
    return { kind: "answers", answers: (await ANSWERS[question.type]?.(lookup, asked, question)) ?? [] };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENODATA") return { kind: "answers", answers: [] };
    return { kind: code === "ENOTFOUND" ? "no_such_name" : "failed" };
  }
}

async function addressesFor(lookup: NameLookup, asked: string, { name }: Question): Promise<DnsResult> {
  const { addresses, ttlSeconds } = await lookup.addresses(asked);
  const open = addresses.filter((address) => !isClosedToAll(address));
  if (open.length === 0) return { kind: "closed", address: addresses[0] ?? "" };
  return { kind: "answers", answers: open.map((data) => ({ type: "A", name, ttl: ttlSeconds, data })) };
}
