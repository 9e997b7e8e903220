import { expect, test } from "vitest";
import { wantsHtml } from "./wants-html.ts";

const browser = { "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0" };

test.each<[Record<string, string>, boolean]>([
  [browser, true],
  [{ "user-agent": "opera" }, true],
  [{ ...browser, accept: "text/html,application/json" }, true],
  [{ ...browser, "sec-fetch-mode": "navigate" }, true],
  [{ ...browser, "sec-fetch-mode": "navigate", "x-requested-with": "x" }, true],
  [{}, false],
  [{ "user-agent": "curl/8.5.0" }, false],
  [{ "user-agent": "e2b-js-sdk/2.51.0" }, false],
  [{ ...browser, accept: "application/json" }, false],
  [{ ...browser, "sec-fetch-mode": "cors" }, false],
  [{ ...browser, "sec-fetch-mode": "no-cors" }, false],
  [{ ...browser, "sec-fetch-mode": "same-origin" }, false],
  [{ ...browser, "sec-fetch-mode": "websocket" }, false],
  [{ ...browser, "x-requested-with": "XMLHttpRequest" }, false],
])("%j: %s", (headers, expected) => {
  expect(wantsHtml(headers)).toBe(expected);
});
