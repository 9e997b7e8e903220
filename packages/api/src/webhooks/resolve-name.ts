import { Resolver } from "node:dns/promises";

const TIMEOUT_MS = 3_000;
const TRIES = 2;

/**
 * The addresses of a name, from the resolvers of the host. Not by getaddrinfo, which takes one of the few threads that files need as well:
 * a name server that never answers would stop the platform.
 */
export async function resolveName(hostname: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = found.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  const [first] = found;
  if (addresses.length === 0 && first?.status === "rejected") throw first.reason;
  return addresses;
}
