// Node's own `Headers` drags in its whole HTTP client when it is first touched: 40 ms of the first command in every sandbox,
// and megabytes in each. Connect needs nothing but this map. Names are lower-cased and values joined as the Fetch
// standard says; what Node's HTTP server already guards (characters of names and values) is not checked again.

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
      // The one field whose values must not be joined.
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
 * Puts it in the place of the global one, for this process. By assignment: defining the property anew would first ask the old
 * one for its value, and that loads all that is to be left out. Preconditions: nothing has touched the global one yet.
 */
export function installLightHeaders(): void {
  (globalThis as { Headers: unknown }).Headers = LightHeaders;
}

// String values too are iterable, but no caller gives one.
function isIterable(init: Init): init is Iterable<readonly [string, string]> {
  return Symbol.iterator in init;
}

function trim(value: string): string {
  return String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
}
