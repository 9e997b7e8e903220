// A runsc that misbehaves when a test says so: in place of the real one, which it calls otherwise.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testTools } from "@skerry/testkit/tools";

export interface OddRunsc {
  readonly path: string;
  /** From now on. `hang`: never does it. `slow`: does it three seconds late. `late`: does it and does not end. */
  misbehave(how: "hang" | "slow" | "late" | "fail", verb: string): void;
  behave(): void;
}

export function writeOddRunsc(dir: string): OddRunsc {
  const path = join(dir, "runsc-odd");
  const order = join(dir, "order");
  const script = `#!/bin/bash
read -r how verb < ${order}
for arg in "$@"; do
  if [ "$arg" = "$verb" ]; then
    case "$how" in
      hang) exec -a "$0" sleep 1000 ;;
      slow) sleep 3 ;;
      late) ${testTools().runsc} "$@"; exec sleep 1000 ;;
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
    misbehave: (how: string, verb: string) => writeFileSync(order, `${how} ${verb}\n`),
    behave: () => writeFileSync(order, "well none\n"),
  };
  odd.behave();
  return odd;
}
