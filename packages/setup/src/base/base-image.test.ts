import { expect, test } from "vitest";
import { DEFAULT_BASE_IMAGE, parseBaseImage, wantedBaseImage } from "./base-image.ts";

test("the setting wins over the image of the existing template, and that over the default", () => {
  expect(wantedBaseImage("host.example/debian", { wantedImage: "debian" })).toBe("host.example/debian");
  expect(wantedBaseImage(undefined, { wantedImage: "debian" })).toBe("debian");
  expect(wantedBaseImage(undefined, undefined)).toBe(DEFAULT_BASE_IMAGE);
});

test("an empty setting means no image", () => {
  expect(wantedBaseImage("", undefined)).toBe("none");
  expect(wantedBaseImage("none", { wantedImage: "debian" })).toBe("none");
  expect(parseBaseImage("none")).toBeUndefined();
});

test("a template without a recorded image stays as it is", () => {
  expect(wantedBaseImage(undefined, {})).toBe("none");
});

test("the default is a valid reference, and an invalid one is reported as an error in the setting", () => {
  expect(parseBaseImage(DEFAULT_BASE_IMAGE)).toMatchObject({ registry: "docker.io", repository: "library/debian" });
  expect(() => parseBaseImage("Not An Image")).toThrow(
    expect.objectContaining({ exit: "usage", message: expect.stringMatching(/^SKERRY_BASE_IMAGE: /) }),
  );
});
