// Links to ports of sandboxes. Whoever has a link reaches its port until it expires or is revoked, and needs no other credential.

import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "@skerry/base";
import type { LinkRepository, StoredLink } from "@skerry/store";
import { AGENT_PORT, imageIdFrom, LINK_PARAMETER, type LinkProof } from "@skerry/wire";
import { publicError } from "../errors.ts";

/** How many links a sandbox may have that have not expired. Stated in docs/network.md. */
const MAX_LINKS = 100;

const TOKEN_BYTES = 32;
const ID = /^lnk_[a-z0-9]{20}$/;

export interface NewLink {
  readonly sandboxId: string;
  readonly port: number;
  readonly path: string;
  readonly methods: readonly string[] | undefined;
  readonly lifeMs: number;
}

/** A link and its only copy of the token. */
export interface MadeLink {
  readonly link: StoredLink;
  readonly token: string;
  readonly url: string;
  /** The same in the path form, if there is one. */
  readonly pathUrl: string | undefined;
}

/** How clients reach the ports of sandboxes. */
export interface SandboxOrigin {
  readonly scheme: "http" | "https";
  /** With a port, if clients need one. */
  readonly domain: string;
  /** The host of the path form, with a port if clients need one. */
  readonly pathHost?: string;
}

export interface LinkServiceDeps {
  readonly links: LinkRepository;
  readonly clock: Clock;
  readonly origin: SandboxOrigin;
  /** Tests use fewer. */
  readonly maxLinks?: number;
}

/** Callers have checked that the sandbox belongs to the team. */
export class LinkService {
  readonly #deps: LinkServiceDeps;
  constructor(deps: LinkServiceDeps) {
    this.#deps = deps;
  }

  async create(teamId: string, { lifeMs, ...about }: NewLink): Promise<MadeLink> {
    const { links, clock, maxLinks = MAX_LINKS } = this.#deps;
    const id = `lnk_${imageIdFrom(randomBytes)}`;
    const token = `${id}.${randomBytes(TOKEN_BYTES).toString("base64url")}`;
    const tokenHash = hash("sha256", token, "hex");
    const now = clock.now();
    const link = { id, ...about, tokenHash, createdAt: now, expiresAt: now + lifeMs };
    switch (await links.add(link, { teamId, max: maxLinks })) {
      case "added":
        return { link, token, ...this.#urlsOf(link, token) };
      case "full":
        throw publicError(
          "limit_reached",
          `The sandbox has ${maxLinks} links, and may have no more. Revoke one, or wait until one expires`,
          {
            detailCode: "link_limit_reached",
          },
        );
      case "ended":
        throw publicError("not_found", `Sandbox "${about.sandboxId}" has ended`);
    }
  }

  async list(sandboxId: string): Promise<readonly StoredLink[]> {
    return await this.#deps.links.list(sandboxId, this.#deps.clock.now());
  }

  /** From now on, no process finds the link. Edges may remember it for a few seconds more. */
  async revoke(sandboxId: string, linkId: string): Promise<void> {
    if (!ID.test(linkId) || !(await this.#deps.links.remove(sandboxId, linkId)))
      throw publicError("not_found", `The sandbox has no link "${linkId}"`);
  }

  /** Returns the link that leads to this port, if the proof is right and the link is valid now. */
  async find(sandboxId: string, port: number, { linkId, digest }: LinkProof): Promise<StoredLink | undefined> {
    const link = ID.test(linkId) ? await this.#deps.links.find(linkId) : undefined;
    if (!link || port === AGENT_PORT || link.sandboxId !== sandboxId || link.port !== port) return undefined;
    const wanted = Buffer.from(link.tokenHash, "hex");
    if (digest.length !== wanted.length || !timingSafeEqual(digest, wanted)) return undefined;
    return link.expiresAt > this.#deps.clock.now() ? link : undefined;
  }

  #urlsOf({ port, sandboxId, path }: StoredLink, token: string): Pick<MadeLink, "url" | "pathUrl"> {
    const { scheme, domain, pathHost } = this.#deps.origin;
    const page = `${path}${path.includes("?") ? "&" : "?"}${LINK_PARAMETER}=${token}`;
    const pathUrl = pathHost === undefined ? undefined : `${scheme}://${pathHost}/s/${sandboxId}/${port}${page}`;
    return { url: `${scheme}://${port}-${sandboxId}.${domain}${page}`, pathUrl };
  }
}
