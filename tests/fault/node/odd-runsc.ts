// A replacement for runsc that misbehaves on request, and otherwise calls the real one.

import { chmodSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testTools } from "@skerry/testkit/tools";
import { ChildNode, type ChildNodeOptions } from "./child-node.ts";

export interface OddRunsc {
  readonly path: string;
  /**
   * How runsc misbehaves from now on, with any of these verbs. `hang`: it does nothing and never ends. `slow`: it works three seconds late.
   * `late`: it works and never ends. `die`: the sandbox ends, and runsc fails.
   */
  misbehave(how: "hang" | "slow" | "late" | "fail" | "die", ...verbs: string[]): void;
  behave(): void;
  /** Whether it has been slow since `misbehave`: within the next three seconds it begins its work. */
  isSlowing(): boolean;
}

function writeOddRunsc(dir: string): OddRunsc {
  const path = join(dir, "runsc-odd");
  const order = join(dir, "order");
  const slowing = join(dir, "slowing");
  const script = `#!/bin/bash
read -r how verbs < ${order}
for arg in "$@"; do
  if [[ " $verbs " = *" $arg "* ]]; then
    case "$how" in
      hang) exec -a "$0" sleep 1000 ;;
      slow) : > ${slowing}; sleep 3 ;;
      late) ${testTools().runsc} "$@"; exec sleep 1000 ;;
      die) pkill -KILL -f -- "runsc-sandbox.*\${@: -1}"; echo "told to die" >&2; exit 1 ;;
      fail) echo "told to fail" >&2; exit 1 ;;
    esac
  fi
done
exec ${testTools().runsc} "$@"
`;
  writeFileSync(path, script);
  chmodSync(path, 0o755);
  const odd = {
    path,
    misbehave: (how: string, ...verbs: string[]) => {
      rmSync(slowing, { force: true });
      writeFileSync(order, `${how} ${verbs.join(" ")}\n`);
    },
    isSlowing: () => existsSync(slowing),
    behave: () => writeFileSync(order, "well none\n"),
  };
  odd.behave();
  return odd;
}

export interface OddNode extends AsyncDisposable {
  readonly node: ChildNode;
  readonly runsc: OddRunsc;
  /** To call after each test: makes runsc behave again, and removes everything from the node. */
  empty(): Promise<void>;
}

/** Starts a node on gVisor whose runsc can misbehave. */
export async function startOddNode(options: Pick<ChildNodeOptions, "timeLimits"> = {}): Promise<OddNode> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "skerry-odd-")));
  const runsc = writeOddRunsc(dir);
  const remove = () => rmSync(dir, { recursive: true, force: true });
  const node = await ChildNode.start({ runtime: "gvisor", runsc: runsc.path, ...options }).catch((error: unknown) => {
    remove();
    throw error;
  });
  return {
    node,
    runsc,
    empty: async () => {
      runsc.behave();
      await node.empty();
    },
    [Symbol.asyncDispose]: async () => {
      await node[Symbol.asyncDispose]();
      remove();
    },
  };
}
