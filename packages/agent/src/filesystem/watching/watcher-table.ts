import { Code, ConnectError } from "@connectrpc/connect";
import { kernelRandomName } from "../../kernel-random.ts";
import type { OpenWatcher } from "./open-watcher.ts";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH = 20;

/** The watchers of CreateWatcher. They stay until the client removes them. */
export class WatcherTable {
  readonly #watchers = new Map<string, OpenWatcher>();

  add(opened: OpenWatcher): string {
    const id = `w${kernelRandomName(ID_LENGTH, ALPHABET)}`;
    this.#watchers.set(id, opened);
    return id;
  }

  get(id: string): OpenWatcher {
    const opened = this.#watchers.get(id);
    if (!opened) throw new ConnectError(`watcher with id ${id} not found`, Code.NotFound);
    return opened;
  }

  remove(id: string): void {
    this.get(id).close();
    this.#watchers.delete(id);
  }
}
