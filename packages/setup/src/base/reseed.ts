// Reseeds the template's interpreters in a sandbox that shares its memory image with others. The agent sends SIGURG to every process.
// Programs ignore it by default; Python and Node.js install a handler when they start. docs/lifecycle.md says what is reseeded and what is
// not.

const DIR = "usr/local/lib/skerry";

/** The addon through which the preload calls a function of OpenSSL that Node.js does not export. */
export const RESEED_ADDON = `${DIR}/koffi.node`;

const NODE_PRELOAD = `/${DIR}/reseed.cjs`;

/**
 * Loaded before each Node.js program, so it does as little as possible until the signal arrives. It must work in every version from 18 on.
 * Math.random gets a new state from the kernel even if OpenSSL cannot be reached.
 */
const NODE_RESEED = `"use strict";
// Skerry: new random numbers when this sandbox goes on from a memory that others go on from as well.
const { random } = Math;
let ours = random;
process.on("SIGURG", () => {
  const crypto = require("crypto");
  try {
    // Every thread's generator takes a new seed of this one when it is next used. The symbol is the program's own, or its library's.
    require("${`/${RESEED_ADDON}`}").load(null).func("int RAND_poll()")();
  } catch (error) {
    process.emitWarning(\`OpenSSL has the random numbers of other copies of this sandbox: \${error.message}\`, "SkerryWarning");
  }
  // Both hand out what was drawn ahead, up to this many times.
  for (let count = 0; count < 128; count++) crypto.randomUUID();
  for (let count = 0; count < 1024; count++) crypto.randomInt(2);
  // V8's own state can't be reached. A program that has put something of its own here knows why.
  if (Math.random !== ours) return;
  const fs = require("fs");
  const kernel = fs.openSync("/dev/urandom");
  const state = new Uint32Array(4);
  fs.readSync(kernel, state);
  fs.closeSync(kernel);
  // xoshiro128++
  const next = () => {
    const sum = (state[0] + state[3]) | 0;
    const result = (((sum << 7) | (sum >>> 25)) + state[0]) >>> 0;
    const shifted = state[1] << 9;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = (state[3] << 11) | (state[3] >>> 21);
    return result;
  };
  ours = { random: () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992 }.random;
  Object.defineProperty(Math, "random", { value: ours, writable: true, enumerable: false, configurable: true });
});
`;

/** Appended to sitecustomize.py, which Python runs at its start, also in virtual environments. Imports only loaded modules. */
const PYTHON_RESEED = `
# Skerry: new random numbers when this sandbox goes on from a memory that others go on from as well.
def _skerry():
    import _signal

    def reseed(_number, _frame):
        import os
        import sys

        loaded = sys.modules
        try:
            if "random" in loaded:
                loaded["random"].seed()
        except Exception:
            pass
        try:
            # Whoever has loaded OpenSSL has one state in common; each thread takes a new seed of it when it next draws.
            if "_ssl" in loaded or "_hashlib" in loaded or "_ctypes" in loaded:
                import _ssl

                _ssl.RAND_add(os.urandom(64), 64.0)
        except Exception:
            pass

    if _signal.getsignal(_signal.SIGURG) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGURG, reseed)


try:
    _skerry()
except Exception:
    pass
del _skerry
`;

/** Files in the template, by path. */
export const RESEED_FILES: Readonly<Record<string, string>> = {
  "etc/skerry/generation.d/50-interpreters.signal": "URG\n",
  [NODE_PRELOAD.slice(1)]: NODE_RESEED,
  [`${DIR}/sitecustomize.py`]: PYTHON_RESEED,
};

/** Part of the login profile, through which every command of a client runs. */
export const RESEED_PROFILE = `case " \${NODE_OPTIONS-} " in
  *" --require=${NODE_PRELOAD} "*) ;;
  *)
    NODE_OPTIONS="--require=${NODE_PRELOAD}\${NODE_OPTIONS:+ $NODE_OPTIONS}"
    export NODE_OPTIONS
    ;;
esac
`;

/** Run in the template. Adds the lines to each installed Python 3 and compiles them, so that no start has to. */
export const RESEED_PYTHON = `set -eu
for python in /usr/bin/python3 /usr/local/bin/python3; do
  [ -x "$python" ] || continue
  file=$("$python" -S -c 'import sysconfig; print(sysconfig.get_path("stdlib") + "/sitecustomize.py")')
  if [ -e "$file" ] && grep -q '^def _skerry' "$file"; then continue; fi
  cat /${DIR}/sitecustomize.py >>"$file"
  "$python" -m py_compile "$file"
done
`;
