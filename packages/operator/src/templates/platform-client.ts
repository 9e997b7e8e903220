import { openAsBlob } from "node:fs";
import { asError, errnoOf } from "@skerry/base";
import { clientUrls, dataDirOf, dataFolder, OperatorError, readSecrets, readSettings } from "@skerry/setup/folder";
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

/** The platform's public API, as the team that the data folder has a key of. */
export class PlatformClient {
  readonly api: string;
  readonly #apiKey: string;

  constructor(api: string, apiKey: string) {
    this.api = api;
    this.#apiKey = apiKey;
  }

  static async open(context: OperatorContext, dataDir: string | undefined): Promise<PlatformClient> {
    const folder = dataFolder(dataDirOf(dataDir, context.env));
    const secrets = await readSecrets(folder);
    const settings = await readSettings(folder);
    if (!settings) {
      throw new OperatorError(`there is no platform in ${folder.root}`, { exit: "notRunning", hints: ["To start one, run ./skerry up."] });
    }
    return new PlatformClient(clientUrls(settings).api, secrets.apiKey);
  }

  /** Returns the JSON body. Throws ApiError. */
  async call<T>(method: string, path: string, options: { readonly body?: object; readonly signal?: AbortSignal } = {}): Promise<T> {
    return (await this.#send<T>(method, path, options)).body;
  }

  /** All entries of a list that comes in pages. */
  async list<T>(path: string): Promise<readonly T[]> {
    const entries: T[] = [];
    for (let next: string | null = null; ; ) {
      const query: string = next === null ? "" : `&nextToken=${encodeURIComponent(next)}`;
      const page: { body: readonly T[]; next: string | null } = await this.#send("GET", `${path}?limit=100${query}`, {});
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

  async #send<T>(method: string, path: string, { body, signal }: { readonly body?: object; readonly signal?: AbortSignal }) {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const response = await this.#fetch(`${this.api}${path}`, {
      method,
      headers: { "X-API-Key": this.#apiKey, ...(body && { "Content-Type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    const text = await response.text();
    if (!response.ok) throw apiError(response.status, messageOf(text));
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

function apiError(status: number, message: string): ApiError {
  if (status === 401) {
    return new ApiError(status, `the platform refuses the API key of the data folder: ${message}`, [
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
