import { openAsBlob } from "node:fs";
import { asError, errnoOf } from "@skerry/base";
import { clientUrls, dataDirOf, dataFolder, OperatorError, readSecrets, readSettings, type Secrets } from "@skerry/setup/folder";
import type { OperatorContext } from "../context.ts";

/** A response with a status that is none of success. */
export class ApiError extends OperatorError {
  readonly status: number;
  constructor(status: number, message: string, hints: readonly string[] = []) {
    super(message, { hints });
    this.status = status;
  }
}

const REQUEST_TIMEOUT_MS = 60_000;
const UPLOAD_TIMEOUT_MS = 3_600_000;

interface CallOptions {
  readonly body?: object;
  readonly signal?: AbortSignal;
  /** The team that the operator acts as. */
  readonly teamId?: string;
}

/** How a client authenticates: with the API key of the first start's team, or with the operator's admin token. */
interface Credential {
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The platform's public API, with a credential of the data folder. */
export class PlatformClient {
  readonly api: string;
  readonly #credential: Credential;

  private constructor(api: string, credential: Credential) {
    this.api = api;
    this.#credential = credential;
  }

  /** As the team of the first start. */
  static async open(context: OperatorContext, dataDir: string | undefined): Promise<PlatformClient> {
    const { api, secrets } = await PlatformClient.#find(context, dataDir);
    return new PlatformClient(api, { what: "API key", headers: { "X-API-Key": secrets.apiKey } });
  }

  static async openAsOperator(context: OperatorContext, dataDir: string | undefined): Promise<PlatformClient> {
    const { api, secrets } = await PlatformClient.#find(context, dataDir);
    return new PlatformClient(api, { what: "admin token", headers: { "X-Admin-Token": secrets.adminToken } });
  }

  static async #find(context: OperatorContext, dataDir: string | undefined): Promise<{ api: string; secrets: Secrets }> {
    const folder = dataFolder(dataDirOf(dataDir, context.env));
    const secrets = await readSecrets(folder);
    const settings = await readSettings(folder);
    if (!settings) {
      throw new OperatorError(`there is no platform in ${folder.root}`, { exit: "notRunning", hints: ["To start one, run ./skerry up."] });
    }
    return { api: clientUrls(settings).api, secrets };
  }

  /** Returns the JSON body. Throws ApiError. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    return (await this.#send<T>(method, path, options)).body;
  }

  /** All entries of a list that comes in pages. */
  async list<T>(path: string): Promise<readonly T[]> {
    const entries: T[] = [];
    for (let next: string | null = null; ; ) {
      const wanted = new URLSearchParams({ limit: "100", ...(next === null ? {} : { nextToken: next }) });
      const page: { body: readonly T[]; next: string | null } = await this.#send("GET", `${path}?${wanted}`, {});
      entries.push(...page.body);
      next = page.next === "" ? null : page.next;
      if (next === null) return entries;
    }
  }

  /** Sends a file to an upload link, which needs no key. */
  async upload(
    url: string,
    options: { readonly file: string; readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal },
  ) {
    const { file, headers, signal } = options;
    const body = await openAsBlob(file);
    const response = await this.#fetch(url, {
      method: "PUT",
      headers,
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(UPLOAD_TIMEOUT_MS)]),
    });
    const text = await response.text();
    if (!response.ok) throw new ApiError(response.status, `the upload was answered ${response.status}: ${messageOf(text)}`);
  }

  async #send<T>(method: string, path: string, { body, signal, teamId }: CallOptions) {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const response = await this.#fetch(`${this.api}${path}`, {
      method,
      headers: {
        ...this.#credential.headers,
        ...(teamId !== undefined && { "X-Team-ID": teamId }),
        ...(body && { "Content-Type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    const text = await response.text();
    if (!response.ok) throw apiError(response.status, messageOf(text), this.#credential.what);
    return { body: (text === "" ? undefined : JSON.parse(text)) as T, next: response.headers.get("X-Next-Token") };
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url, init);
    } catch (error) {
      if (init.signal?.aborted && init.signal.reason instanceof OperatorError) throw init.signal.reason;
      if (errnoOf(error) === "ECONNREFUSED") {
        throw new OperatorError(`the platform does not answer at ${this.api}`, {
          exit: "notRunning",
          hints: ["To start it, run ./skerry up. To see why it stopped, run ./skerry logs."],
          cause: error,
        });
      }
      throw new OperatorError(`a request to ${this.api} failed: ${causeOf(error)}`, {
        hints: ["Try again, and look at ./skerry logs."],
        cause: error,
      });
    }
  }
}

function apiError(status: number, message: string, credential: string): ApiError {
  if (status === 401) {
    return new ApiError(status, `the platform refuses the ${credential} of the data folder: ${message}`, [
      "Restart the platform: ./skerry restart.",
    ]);
  }
  return new ApiError(status, message);
}

/** The platform answers failures with `{code, message}`. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string") return message;
  } catch {
    // Something in between answered.
  }
  return text.slice(0, 300);
}

function causeOf(error: unknown): string {
  const { cause, message } = asError(error);
  return cause instanceof Error ? cause.message : message;
}
