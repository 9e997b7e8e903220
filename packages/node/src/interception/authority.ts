// The certificate authority of a sandbox, with which the node answers for the hosts of its header rules. The sandbox trusts its certificate;
// its key exists only in the memory of this process. The key is derived from a seed of the control plane, so that it is the same after a
// restart: programs in the sandbox that have read the certificate go on trusting it.

import { createECDH, createHash, hkdfSync, randomBytes, webcrypto } from "node:crypto";
import type { Secret } from "@skerry/base";

const CURVE = "P-256";
const SIGNING = { name: "ECDSA", hash: "SHA-256", namedCurve: CURVE };
/** The order of the curve's group. Private keys are smaller. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const DAY_MS = 86_400_000;
/** The same for each certificate of an authority, whenever it is made. */
const AUTHORITY_FROM = new Date("2020-01-01T00:00:00Z");
const AUTHORITY_UNTIL = new Date("2049-12-31T00:00:00Z");
/** The clock of a sandbox may differ from that of the host, such as after a restore. */
const LEAF_BEFORE_MS = 30 * DAY_MS;
const LEAF_AFTER_MS = 60 * DAY_MS;
const RENEW_AFTER_MS = DAY_MS;
/** A wildcard is for any number of names, which the sandbox chooses. */
const MAX_LEAVES = 200;
/** A certificate takes milliseconds of the process that serves all sandboxes. */
const NEW_PER_SECOND = 20;

type X509 = typeof import("@peculiar/x509");
/** It names the types of browsers. */
type CryptoOfLibrary = InstanceType<X509["CryptoProvider"]> extends Map<string, infer C> ? C : never;

export interface Leaf {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

export class Authority {
  /** PEM. */
  readonly certificate: string;
  readonly #x509: X509;
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #leafKeys: webcrypto.CryptoKeyPair;
  readonly #leafKey: string;
  readonly #root: InstanceType<X509["X509Certificate"]>;
  #second = 0;
  #madeInSecond = 0;
  readonly #leaves = new Map<string, { readonly leaf: Promise<Leaf>; readonly madeAtMs: number }>();

  private constructor(parts: {
    x509: X509;
    keys: webcrypto.CryptoKeyPair;
    leafKeys: webcrypto.CryptoKeyPair;
    leafKey: string;
    root: InstanceType<X509["X509Certificate"]>;
  }) {
    this.#x509 = parts.x509;
    this.#keys = parts.keys;
    this.#leafKeys = parts.leafKeys;
    this.#leafKey = parts.leafKey;
    this.#root = parts.root;
    this.certificate = `${parts.root.toString("pem")}\n`;
  }

  static async fromSeed(seed: Secret): Promise<Authority> {
    // Loaded when the first sandbox has rules.
    const x509 = await import("@peculiar/x509");
    x509.cryptoProvider.set(webcrypto as unknown as CryptoOfLibrary);
    const keys = await keysFrom(seed);
    const leafKeys = await webcrypto.subtle.generateKey(SIGNING, true, ["sign", "verify"]);
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", leafKeys.privateKey));
    const leafKey = `-----BEGIN PRIVATE KEY-----\n${pkcs8.toString("base64")}\n-----END PRIVATE KEY-----\n`;
    const root = await x509.X509CertificateGenerator.createSelfSigned({
      // Programs find authorities by name, so each one has its own.
      name: `CN=Skerry sandbox CA ${nameOf(seed)}`,
      serialNumber: nameOf(seed),
      notBefore: AUTHORITY_FROM,
      notAfter: AUTHORITY_UNTIL,
      signingAlgorithm: SIGNING,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new Authority({ x509, keys, leafKeys, leafKey, root });
  }

  /** A certificate for one host name, and its key. Rejects when too many are made at once. */
  async leafFor(host: string): Promise<Leaf> {
    const known = this.#leaves.get(host);
    this.#leaves.delete(host);
    const isFresh = known !== undefined && Date.now() - known.madeAtMs < RENEW_AFTER_MS;
    if (!isFresh) this.#countNew();
    const entry = isFresh ? known : { leaf: this.#make(host), madeAtMs: Date.now() };
    this.#leaves.set(host, entry);
    const [oldest] = this.#leaves.keys();
    if (this.#leaves.size > MAX_LEAVES && oldest !== undefined) this.#leaves.delete(oldest);
    try {
      return await entry.leaf;
    } catch (error) {
      this.#leaves.delete(host);
      throw error;
    }
  }

  #countNew(): void {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) this.#madeInSecond = 0;
    this.#second = second;
    this.#madeInSecond += 1;
    if (this.#madeInSecond > NEW_PER_SECOND) throw new Error("too many certificates at once");
  }

  async #make(host: string): Promise<Leaf> {
    const { X509CertificateGenerator, ...x509 } = this.#x509;
    const certificate = await X509CertificateGenerator.create({
      serialNumber: `00${randomBytes(15).toString("hex")}`,
      // A name may be longer than a common name can be. Clients look at the alternative name alone.
      subject: "CN=Skerry",
      issuer: this.#root.subject,
      notBefore: new Date(Date.now() - LEAF_BEFORE_MS),
      notAfter: new Date(Date.now() + LEAF_AFTER_MS),
      signingAlgorithm: SIGNING,
      publicKey: this.#leafKeys.publicKey,
      signingKey: this.#keys.privateKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: host }]),
        await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
        await x509.SubjectKeyIdentifierExtension.create(this.#leafKeys.publicKey),
      ],
    });
    return { certificate: certificate.toString("pem"), key: this.#leafKey };
  }
}

/** Names an authority without revealing its seed. Begins with a digit below 8, so that it is a positive number as well. */
function nameOf(seed: Secret): string {
  return `1${createHash("sha256").update("skerry authority name\0").update(seed.reveal()).digest("hex").slice(0, 15)}`;
}

async function keysFrom(seed: Secret): Promise<webcrypto.CryptoKeyPair> {
  // 384 bits, so that the remainder is as good as evenly distributed.
  const bytes = Buffer.from(hkdfSync("sha256", seed.reveal(), "", "skerry authority key", 48));
  const number = (BigInt(`0x${bytes.toString("hex")}`) % (ORDER - 1n)) + 1n;
  const d = Buffer.from(number.toString(16).padStart(64, "0"), "hex");
  const curve = createECDH("prime256v1");
  curve.setPrivateKey(d);
  const point = curve.getPublicKey();
  const part = (from: number, to: number) => point.subarray(from, to).toString("base64url");
  const jwk = { kty: "EC", crv: CURVE, x: part(1, 33), y: part(33, 65) };
  const load = (key: webcrypto.JsonWebKey, use: webcrypto.KeyUsage) => webcrypto.subtle.importKey("jwk", key, SIGNING, true, [use]);
  return { privateKey: await load({ ...jwk, d: d.toString("base64url") }, "sign"), publicKey: await load(jwk, "verify") };
}
