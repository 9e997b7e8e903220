"use strict";
// Skerry: new random numbers when this sandbox goes on from a memory that others go on from as well.
const { random } = Math;
let ours = random;
process.on("SIGURG", () => {
  const crypto = require("crypto");
  try {
    // Every thread's generator takes a new seed of this one when it is next used. The symbol is the program's own, or its library's.
    require("/usr/local/lib/skerry/koffi.node").load(null).func("int RAND_poll()")();
  } catch (error) {
    process.emitWarning(`OpenSSL has the random numbers of other copies of this sandbox: ${error.message}`, "SkerryWarning");
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
