import { expect, test } from "vitest";
import { DEFAULT_BASE_IMAGE, parseBaseImage, wantedBaseImage } from "./base-image.ts";

test("what was said comes first, then what the template was made with, then the default", () => {
  expect(wantedBaseImage("host.example/debian", { wantedImage: "debian" })).toBe("host.example/debian");
  expect(wantedBaseImage(undefined, { wantedImage: "debian" })).toBe("debian");
  expect(wantedBaseImage(undefined, undefined)).toBe(DEFAULT_BASE_IMAGE);
});

test("nothing said in so many words is no image", () => {
  expect(wantedBaseImage("", undefined)).toBe("none");
  expect(wantedBaseImage("none", { wantedImage: "debian" })).toBe("none");
  expect(parseBaseImage("none")).toBeUndefined();
});

test("a template from before there was a choice stays what it is", () => {
  expect(wantedBaseImage(undefined, {})).toBe("none");
});

test("the default is an image reference, and what is none is told as a mistake in the setting", () => {
  expect(parseBaseImage(DEFAULT_BASE_IMAGE)).toMatchObject({ registry: "docker.io", repository: "library/debian" });
  expect(() => parseBaseImage("Not An Image")).toThrow(
    expect.objectContaining({ exit: "usage", message: expect.stringMatching(/^SKERRY_BASE_IMAGE: /) }),
  );
});
