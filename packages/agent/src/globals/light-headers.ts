// A replacement for Node's own `Headers`, which loads Node's whole HTTP client on first use: 40 ms of the first command in every
// sandbox, and megabytes of memory. Connect needs only this map. Names are lower-cased and values joined as the Fetch standard says.
// Node's HTTP server has already checked the characters of names and values.

type Init = Iterable<readonly [string, string]> | Readonly<Record<string, string>>;

export class LightHeaders {
  readonly #fields = new Map<string, string[]>();

  constructor(init?: Init) {
    if (!init) return;
    for (const [name, value] of isIterable(init) ? init : Object.entries(init)) this.append(name, value);
  }

  append(name: string, value: string): void {
    const key = name.toLowerCase();
    const values = this.#fields.get(key);
    if (values) values.push(trim(value));
    else this.#fields.set(key, [trim(value)]);
  }

  set(name: string, value: string): void {
    this.#fields.set(name.toLowerCase(), [trim(value)]);
  }

  get(name: string): string | null {
    return this.#fields.get(name.toLowerCase())?.join(", ") ?? null;
  }

  getSetCookie(): string[] {
    return [...(this.#fields.get("set-cookie") ?? [])];
  }

  has(name: string): boolean {
    return this.#fields.has(name.toLowerCase());
  }

  delete(name: string): void {
    this.#fields.delete(name.toLowerCase());
  }

  forEach(visit: (value: string, name: string, headers: LightHeaders) => void, thisArg?: unknown): void {
    for (const [name, value] of this) visit.call(thisArg, value, name, this);
  }

  *entries(): IterableIterator<[string, string]> {
    for (const name of [...this.#fields.keys()].sort()) {
      const values = this.#fields.get(name) ?? [];
      // The only field whose values must not be joined.
      if (name === "set-cookie") for (const value of values) yield [name, value];
      else yield [name, values.join(", ")];
    }
  }

  *keys(): IterableIterator<string> {
    for (const [name] of this) yield name;
  }

  *values(): IterableIterator<string> {
    for (const [, value] of this) yield value;
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }
}

/**
 * Replaces the global `Headers` for this process. It uses an assignment: defining the property would first read the old value, which
 * loads the HTTP client. Preconditions: no code has used the global `Headers` yet.
 */
export function installLightHeaders(): void {
  (globalThis as { Headers: unknown }).Headers = LightHeaders;
}

// Strings are iterable too, but no caller passes one.
function isIterable(init: Init): init is Iterable<readonly [string, string]> {
  return Symbol.iterator in init;
}

function trim(value: string): string {
  return String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
}
