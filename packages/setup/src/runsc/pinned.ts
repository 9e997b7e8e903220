// The version of gVisor that this version of Skerry is tested with. A checkpoint can be restored only by the same binary. With this Go
// version and these flags the build is reproducible, so the digest of the result is checked as well as those of the sources.

export const GVISOR_MODULE = "gvisor.dev/gvisor";
export const GVISOR_VERSION = "v0.0.0-20260905035102-160fafc42237";

/** SHA-512 of the reproducible build of `module/go.mod`, per Go architecture. */
export const GVISOR_BUILD_SHA512: Readonly<Record<GoArch, string>> = {
  amd64: "6946512cea8153f9ec3c5b29bd11857832624ba1777b7e1abc35c8f2382b2d23e87c9f2dd4c317a80ae7dd4ff4e41e22ddae2a8498451f624965cef712e1b0da",
  arm64: "d7941fd505676e5a4e6558bf31b3df672a0817f3445aadb8a227be214711b458bf6042cafb3b984a54692bd894e2fddc392391066f340663a5e975cc2b7ee061",
};

/** The official release closest to that version: a directory name on gVisor's release server. */
export const GVISOR_RELEASE = "20260907.0";
export const GVISOR_RELEASE_BASE = "https://storage.googleapis.com/gvisor/releases/release";

export const GO_VERSION = "1.26.8";

/** SHA-256 of the Go toolchain as the module proxy serves it (golang.org/toolchain@v0.0.1-go<version>.linux-<arch>). */
export const GO_TOOLCHAIN_SHA256: Readonly<Record<GoArch, string>> = {
  amd64: "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7",
  arm64: "02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99",
};

export type GoArch = "amd64" | "arm64";

export const goArch = (): GoArch => (process.arch === "arm64" ? "arm64" : "amd64");
