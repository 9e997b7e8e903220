// A real OpenID Connect provider (`oidc-provider`) for tests: users sign in with the authorization code flow, as in a browser. It can be slow,
// stop, and replace its keys.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import Provider, { type Configuration } from "oidc-provider";

const CLIENT = { client_id: "skerry", client_secret: "client-secret", redirect_uris: ["http://127.0.0.1/callback"] };

/** The client at the provider, for which its ID tokens are meant. */
export const AUDIENCE = CLIENT.client_id;

export interface SigningKey {
  readonly kid: string;
  readonly jwk: JWK;
  readonly privateKey: GenerateKeyPairResult["privateKey"];
}

export class TestProvider implements AsyncDisposable {
  readonly issuer: string;
  /** What the provider says about each user. */
  readonly users = new Map<string, Readonly<Record<string, unknown>>>();
  /** How often the keys were asked for. */
  keyRequests = 0;
  /** While set, no request is answered. */
  hung: PromiseWithResolvers<void> | undefined;
  #server: Server;
  #provider: Provider;
  #key: SigningKey;

  private constructor(server: Server, issuer: string, key: SigningKey) {
    this.issuer = issuer;
    this.#server = server;
    this.#key = key;
    this.#provider = this.#withKey(key);
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<TestProvider> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TestProvider(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, await newKey("key-1"));
  }

  /** The key that signs now. */
  get key(): SigningKey {
    return this.#key;
  }

  /** From now on, the provider has this key alone. */
  async rotate(kid: string): Promise<void> {
    this.#key = await newKey(kid);
    this.#provider = this.#withKey(this.#key);
  }

  /** Refuses connections until `resume`. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async resume(): Promise<void> {
    this.#server.listen(Number(new URL(this.issuer).port), "127.0.0.1");
    await once(this.#server, "listening");
  }

  /** Signs a user in, as a browser and the client do, and returns the ID token. */
  async signIn(user: string): Promise<string> {
    const browser = new Browser(this.issuer);
    const asked = {
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0] ?? "",
      response_type: "code",
      scope: "openid profile email groups",
    };
    let at = await browser.open(`/auth?${new URLSearchParams(asked)}`);
    at = await browser.open(at, { prompt: "login", login: user, password: "any" });
    at = await browser.open(await browser.open(at), { prompt: "consent" });
    const code = new URL(await browser.open(at)).searchParams.get("code") ?? "";
    const { client_id, client_secret } = CLIENT;
    const response = await fetch(`${this.issuer}/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${btoa(`${client_id}:${client_secret}`)}` },
      body: new URLSearchParams({ grant_type: "authorization_code", code, redirect_uri: asked.redirect_uri }),
    });
    const { id_token } = (await response.json()) as { id_token: string };
    return id_token;
  }

  /** A token that the provider's key signs, with other claims than those of a good one. */
  async sign(claims: JWTPayload, header: Partial<JWTHeaderParameters> = {}, key = this.#key): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const payload = { iss: this.issuer, aud: AUDIENCE, sub: "somebody", iat: now, exp: now + 600, groups: ["leads"], ...claims };
    return await new SignJWT(payload).setProtectedHeader({ alg: "RS256", kid: key.kid, ...header }).sign(key.privateKey);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.hung?.resolve();
    if (this.#server.listening) await this.stop();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === "/jwks") this.keyRequests += 1;
    await this.hung?.promise;
    await this.#provider.callback()(request, response);
  }

  #withKey({ jwk }: SigningKey): Provider {
    const configuration: Configuration = {
      clients: [{ ...CLIENT, application_type: "native", grant_types: ["authorization_code"], response_types: ["code"] }],
      jwks: { keys: [jwk] },
      claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
      // Puts the claims into the ID token, as most providers do.
      conformIdTokenClaims: false,
      pkce: { required: () => false },
      cookies: { keys: ["cookie-key"] },
      findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, ...this.users.get(sub) }) }),
    };
    return new Provider(this.issuer, configuration);
  }
}

export async function newKey(kid: string): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { kid, privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg: "RS256", use: "sig" } };
}

/** Keeps cookies and shows where each answer leads. */
class Browser {
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();
  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Opens a page, or sends its form, and returns the address to which the answer redirects; of a page, its own address. */
  async open(address: string, form?: Readonly<Record<string, string>>): Promise<string> {
    const url = new URL(address, this.#origin);
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, {
      redirect: "manual",
      headers: { Cookie: cookie },
      ...(form ? { method: "POST", body: new URLSearchParams(form) } : {}),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    const text = await response.text();
    const next = response.headers.get("location");
    if (next !== null) return new URL(next, url).href;
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
    return url.href;
  }
}
