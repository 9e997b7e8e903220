import { expect, test } from "vitest";
import { FAILED_KEY, whyNotCached } from "./why-not-cached.ts";

const step = { key: "k", state: "s", type: "RUN", args: "a", filesHash: "" };
const why = (last: Partial<typeof step> | undefined, isForced = false) =>
  whyNotCached({ index: 1, step, isForced, before: last ? [step, { ...step, ...last }] : [step] });

test("says what is different from the last build", () => {
  expect(why({}, true)).toBe("forced");
  expect(whyNotCached({ index: 0, step, isForced: false, before: undefined })).toBe("first build of this template");
  expect(why(undefined)).toBe("first build of this step");
  expect(why({})).toBe("its cached result is gone");
  expect(why({ key: "o", type: "COPY" })).toBe("the step changed");
  expect(why({ key: "o", args: "b" })).toBe("the command changed");
  expect(why({ key: "o", filesHash: "f" })).toBe("the files changed");
  expect(why({ key: "o", state: "t" })).toBe("an earlier step or what it is based on changed");
  expect(why({ key: FAILED_KEY })).toBe("it failed in the last build");
});

test("other steps than RUN have arguments", () => {
  const copy = { ...step, type: "COPY" };
  expect(whyNotCached({ index: 0, step: copy, isForced: false, before: [{ ...copy, key: "o", args: "b" }] })).toBe("the arguments changed");
});
