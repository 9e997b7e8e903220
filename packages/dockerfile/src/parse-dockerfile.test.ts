// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of a Dockerfile
import { describe, expect, it } from "vitest";
import { type DockerfileBuild, DockerfileError, parseDockerfile } from "./index.ts";

/** The steps between the first two, which every Dockerfile has, and those that are added at the end. */
function stepsOf(lines: string, buildArgs: Record<string, string> = {}) {
  const { steps } = parseDockerfile(`FROM debian:13\n${lines}\nUSER last\nWORKDIR /last`, { buildArgs });
  return steps.slice(2, -2).map(({ type, args }) => [type, ...args]);
}

function runOf(lines: string): string | undefined {
  return stepsOf(lines).at(-1)?.[1];
}

function problemsOf(text: string, buildArgs: Record<string, string> = {}): string[] {
  try {
    parseDockerfile(text, { buildArgs });
  } catch (error) {
    if (error instanceof DockerfileError) return error.problems.map(({ line, message }) => `${line}: ${message}`);
    throw error;
  }
  return [];
}

function startOf(lines: string): string {
  return parseDockerfile(`FROM a\n${lines}`).startCommand;
}

function noticesOf(build: DockerfileBuild): string[] {
  return build.notices.map(({ line, message }) => `${line}: ${message}`);
}

describe("a Dockerfile", () => {
  it("begins as root in / and ends as the user of sandboxes in its home", () => {
    const build = parseDockerfile("FROM debian:13\nRUN true\n");
    expect(build.fromImage).toBe("debian:13");
    expect(build.startCommand).toBe("");
    expect(build.steps.map(({ type, args, line }) => [line, type, ...args])).toEqual([
      [1, "USER", "root"],
      [1, "WORKDIR", "/"],
      [2, "RUN", "true"],
      [2, "USER", "user"],
      [2, "WORKDIR", "/home/user"],
    ]);
  });

  it("keeps the user and the directory that it sets", () => {
    const { steps } = parseDockerfile("from a\nuser node\nworkdir /app");
    expect(steps.slice(2).map(({ type, args }) => [type, ...args])).toEqual([
      ["USER", "node"],
      ["WORKDIR", "/app"],
    ]);
  });

  it("is read with Windows line ends, a byte order mark and empty lines", () => {
    const build = parseDockerfile("\uFEFF\r\n# syntax=docker/dockerfile:1\r\n\r\nFROM a\r\nRUN a \\\r\n  b\r\n");
    expect(build.steps[2]?.args).toEqual(["a   b"]);
  });

  it("takes an escape directive", () => {
    const { steps } = parseDockerfile('# escape=`\nFROM a\nRUN dir C:\\ `\n  b\nENV A=c:\\x` y B=`"');
    expect(steps.slice(2, 4).map(({ args, line }) => [line, ...args])).toEqual([
      [3, "dir C:\\   b"],
      [5, "A", "c:\\x y", "B", '"'],
    ]);
  });

  it("names the instructions that it leaves out", () => {
    const build = parseDockerfile(
      "FROM a\nEXPOSE 80\nVOLUME /x\nLABEL a=b\nMAINTAINER me\nSTOPSIGNAL 9\nHEALTHCHECK CMD true\nONBUILD RUN x",
    );
    expect(noticesOf(build)).toEqual([
      expect.stringMatching(/^7: HEALTHCHECK is left out/),
      expect.stringMatching(/^8: ONBUILD is left out/),
    ]);
    expect(build.steps).toHaveLength(4);
  });

  it("reads past the heredoc of an ONBUILD", () => {
    expect(parseDockerfile("FROM a\nONBUILD RUN <<EOF\nUSER x\nEOF\nRUN b").steps.map(({ type }) => type)).toEqual([
      "USER",
      "WORKDIR",
      "RUN",
      "USER",
      "WORKDIR",
    ]);
  });
});

describe("FROM", () => {
  it.each([
    ["FROM --platform=linux/amd64 a:1 AS x", "a:1"],
    ["ARG V=13\nFROM debian:${V}", "debian:13"],
    ["ARG V=13\nARG I=debian:$V\nFROM $I", "debian:13"],
    ["FROM debian:${V:-12}", "debian:12"],
    ["FROM --platform=$BUILDPLATFORM a", "a"],
    ["FROM a@sha256:0123", "a@sha256:0123"],
    ['FROM "a"', "a"],
  ])("%j builds on %s", (text, image) => {
    expect(parseDockerfile(text).fromImage).toBe(image);
  });

  it("takes a build argument", () => {
    expect(parseDockerfile("ARG V=12\nFROM debian:$V", { buildArgs: { V: "13" } }).fromImage).toBe("debian:13");
  });
});

describe("RUN", () => {
  it.each([
    ["RUN a  'b  c'", "a  'b  c'"],
    ["RUN a \\\n    b", "a     b"],
    ["RUN a\\\nb", "ab"],
    ["RUN a && \\\n# why\n\n   # more\n  b", "a &&   b"],
    ["RUN a \\  \n b", "a  b"],
    ["RUN echo a\\\\\nRUN b", "b"],
    ["RUN echo $A ${B:-c} \\$D", "echo $A ${B:-c} \\$D"],
    ["run a # b", "a # b"],
    ['RUN ["a", "b c", "$D", "it\'s"]', `a 'b c' '$D' 'it'"'"'s'`],
    ["RUN [ -f /x ] && y", "[ -f /x ] && y"],
    ['SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN a | b', "/bin/bash -o pipefail -c 'a | b'"],
    ['SHELL ["/bin/bash", "-c"]\nRUN a | b', "a | b"],
    ['SHELL ["/bin/ash", "-c"]\nRUN ["a"]', "a"],
  ])("%j runs %s", (lines, command) => {
    expect(runOf(lines)).toBe(command);
  });

  it.each([
    ["RUN <<EOF\na\n  $B\nEOF", "a\n  $B\n"],
    ["RUN <<'EOF'\na\nEOF", "a\n"],
    ["RUN <<-EOF\n\ta\n\t\tb\n\tEOF", "a\nb\n"],
    ["RUN <<EOF\n# not a comment\n\n\\\nEOF", "# not a comment\n\n\\\n"],
    ["RUN cat <<EOF > /x\na\nEOF", "cat <<EOF > /x\na\nEOF\n"],
    ["RUN cat <<A <<B\n1\nA\n2\nB", "cat <<A <<B\n1\nA\n2\nB\n"],
    ["RUN cat <<EOF \\\n > /x\na\nEOF", "cat <<EOF  > /x\na\nEOF\n"],
    ['RUN echo "<<EOF"', 'echo "<<EOF"'],
    ["RUN echo $((1<<2))", "echo $((1<<2))"],
    ['SHELL ["/bin/ash", "-c"]\nRUN <<EOF\na\nEOF', "/bin/ash -c 'a\n'"],
  ])("%j runs the document", (lines, command) => {
    expect(runOf(lines)).toBe(command);
  });

  it("runs a script that names its interpreter as a file", () => {
    expect(runOf("RUN <<EOF\n#!/usr/bin/env python3\nprint('a')\nEOF")).toMatch(
      /^f=\$\(mktemp\) && printf %s '#!\/usr\/bin\/env python3\nprint\(/,
    );
  });
});

describe("ENV and ARG", () => {
  it.each([
    ["ENV a=b", ["a", "b"]],
    ["ENV a=b c=d\\ e f='g h' i=\"j  k\"", ["a", "b", "c", "d e", "f", "g h", "i", "j  k"]],
    ["ENV a b  c", ["a", "b  c"]],
    ['ENV a "b c"', ["a", "b c"]],
    ["ENV a=", ["a", ""]],
    ["ENV a=b=c", ["a", "b=c"]],
    ["ENV a=1 \\\n    b=2", ["a", "1", "b", "2"]],
    ["ENV a='it''s' b=\"x\\\"y\\n\"", ["a", "its", "b", 'x"y\\n']],
    ["ENV a='$b' c=\\${d}$", ["a", "${LITERAL_DOLLAR:-$}b", "c", "${LITERAL_DOLLAR:-$}{d}$"]],
    ["ENV PATH=/x:$PATH", ["PATH", "/x:${PATH}"]],
    ["ENV PATH /x:${PATH}", ["PATH", "/x:${PATH}"]],
    ["ENV a=$ b=5$ c='$ ' d=$1$$", ["a", "$", "b", "5$", "c", "$ ", "d", ""]],
  ])("%j sets its pairs", (lines, args) => {
    expect(stepsOf(lines)).toEqual([["ENV", ...args]]);
  });

  it.each([
    ["ENV a=1\nENV b=$a${a}2", ["b", "112"]],
    ["ENV a=1\nENV a=2 b=$a", ["a", "2", "b", "1"]],
    ["ENV b=${a:-x}${a-y}${a:+z}${a+w}", ["b", "xy"]],
    ["ENV a=\nENV b=${a:-x}${a-y}${a:+z}${a+w}", ["b", "xw"]],
    ["ENV a=1\nENV b=${c:-${a}0}", ["b", "10"]],
    [
      "ENV a=/x/y.tar.gz\nENV b=${a#*/} c=${a##*/} d=${a%.*} e=${a%%.*}",
      ["b", "x/y.tar.gz", "c", "y.tar.gz", "d", "/x/y.tar", "e", "/x/y"],
    ],
    ["ENV a=abcabc\nENV b=${a/b/X} c=${a//b/X} d=${a//?c/} e=${a/z/X}", ["b", "aXcabc", "c", "aXcaXc", "d", "aa", "e", "abcabc"]],
    ["ARG a=1\nENV b=$a", ["b", "1"]],
    ["ARG a\nENV b=x$a", ["b", "x"]],
  ])("%j expands what it knows", (lines, args) => {
    expect(stepsOf(lines).at(-1)).toEqual(["ENV", ...args]);
  });

  it("makes an argument a variable of the commands", () => {
    expect(stepsOf("ARG a=1 b c=$a", { b: "2" })).toEqual([["ENV", "a", "1", "b", "2", "c", "${a}"]]);
    expect(stepsOf("ARG a")).toEqual([]);
  });

  it("prefers what ENV says to an argument of the same name", () => {
    expect(stepsOf("ENV a=1\nARG a=2\nENV b=$a", { a: "3" })).toEqual([
      ["ENV", "a", "1"],
      ["ENV", "b", "1"],
    ]);
  });

  it("takes a value from before FROM only where an ARG asks for it", () => {
    const { steps } = parseDockerfile(
      "ARG V=13\nFROM debian:$V\nENV a=$V\nARG V\nENV b=$V TARGET=$TARGETARCH\nARG TARGETARCH\nENV c=$TARGETARCH",
    );
    expect(steps.filter(({ type }) => type === "ENV").map(({ args }) => args)).toEqual([
      ["a", "${V}"],
      ["V", "13"],
      ["b", "13", "TARGET", "${TARGETARCH}"],
      ["TARGETARCH", "amd64"],
      ["c", "amd64"],
    ]);
  });

  it("keeps the dollars of build arguments and of values that are used again", () => {
    expect(stepsOf("ARG a\nENV b=$a\nRUN x", { a: "p$w0rd" })).toEqual([
      ["ENV", "a", "p${LITERAL_DOLLAR:-$}w0rd"],
      ["ENV", "b", "p${LITERAL_DOLLAR:-$}w0rd"],
      ["RUN", "x"],
    ]);
  });

  it("says which build argument nothing takes", () => {
    expect(noticesOf(parseDockerfile("FROM a", { buildArgs: { x: "1" } }))).toEqual(["1: No ARG takes the build argument x."]);
  });
});

describe("COPY and ADD", () => {
  it.each([
    ["COPY a b", [["COPY", "a", "b", "", ""]]],
    ["ADD a b", [["COPY", "a", "b", "", ""]]],
    [
      "COPY a ./b *.txt /dest/",
      [
        ["COPY", "a", "/dest/", "", ""],
        ["COPY", "./b", "/dest/", "", ""],
        ["COPY", "*.txt", "/dest/", "", ""],
      ],
    ],
    [
      "COPY a b .",
      [
        ["COPY", "a", "./", "", ""],
        ["COPY", "b", "./", "", ""],
      ],
    ],
    ['COPY ["a b", "/c d/"]', [["COPY", "a b", "/c d/", "", ""]]],
    ["COPY --chown=u:g --chmod=755 a /b", [["COPY", "a", "/b", "u:g", "0755"]]],
    ["COPY --chown=1000 --link --chmod=04755 a /b", [["COPY", "a", "/b", "1000", "4755"]]],
    ["COPY /a/b /c", [["COPY", "a/b", "/c", "", ""]]],
    ["COPY / /c", [["COPY", ".", "/c", "", ""]]],
    ["COPY a/../b /c", [["COPY", "a/../b", "/c", "", ""]]],
    ["COPY ..cfg /c", [["COPY", "..cfg", "/c", "", ""]]],
    [
      "COPY \\\n  a \\\n  b/ \\\n  /c/",
      [
        ["COPY", "a", "/c/", "", ""],
        ["COPY", "b/", "/c/", "", ""],
      ],
    ],
    ["COPY a ${ROOT}/b", [["COPY", "a", "${ROOT}/b", "", ""]]],
  ])("%j copies each source", (lines, steps) => {
    expect(stepsOf(lines)).toEqual(steps);
  });

  it("gives the files to root after a USER, as Docker does", () => {
    expect(stepsOf("USER node\nCOPY a b\nCOPY --chown=x a b").slice(1)).toEqual([
      ["COPY", "a", "b", "root:root", ""],
      ["COPY", "a", "b", "x", ""],
    ]);
  });

  it("expands variables in paths, owners and modes", () => {
    expect(stepsOf("ENV d=/x o=me\nARG m=640\nCOPY --chown=$o --chmod=$m ${d#/}/a $d/").at(-1)).toEqual([
      "COPY",
      "x/a",
      "/x/",
      "me",
      "0640",
    ]);
  });

  it("knows an ADD from a COPY", () => {
    expect(parseDockerfile("FROM a\nADD a b\nCOPY a b").steps.map(({ isAdd }) => isAdd)).toEqual([false, false, true, false, false, false]);
  });

  it.each([
    [
      "COPY <<EOF /a/b\n$X 'y' \"z\" `w` \\$v\nEOF",
      `f="/a/b"; if [ -d "$f" ]; then f="$f"/EOF; fi; mkdir -p -- "$(dirname -- "$f")" && printf %s "1 'y' \\"z\\" \\\`w\\\` \\$v\n" > "$f" && chmod 0644 -- "$f"`,
    ],
    [
      "COPY --chmod=755 --chown=u:g <<'a.sh' /d/\n$X\na.sh",
      `f="/d/"a.sh; mkdir -p -- "$(dirname -- "$f")" && printf %s '$X\n' > "$f" && chmod 0755 -- "$f" && chown u:g -- "$f"`,
    ],
  ])("%j writes the document as root", (lines, command) => {
    expect(stepsOf(`ENV X=1\n${lines}`).at(-1)).toEqual(["RUN", command, "root"]);
  });

  it("takes documents and files together", () => {
    expect(stepsOf("COPY <<x <<y z /d/\n1\nx\n2\ny").map((step) => step[0])).toEqual(["RUN", "RUN", "COPY"]);
  });
});

describe("WORKDIR and USER", () => {
  it.each([
    ["WORKDIR a b", ["WORKDIR", "a b"]],
    ['WORKDIR "/a b"', ["WORKDIR", "/a b"]],
    ["WORKDIR $HOME/x", ["WORKDIR", "${HOME}/x"]],
    ["USER root", ["USER", "root"]],
    ["USER 0:0", ["USER", "root"]],
    ["USER 1000", ["USER", "1000"]],
    ["ARG u=me\nUSER $u", ["USER", "me"]],
  ])("%j is the step %j", (lines, step) => {
    expect(stepsOf(lines).at(-1)).toEqual(step);
  });

  it("says that a group is left out", () => {
    const build = parseDockerfile("FROM a\nUSER u:g\nUSER u:u");
    expect(build.steps.slice(2, 4).map(({ args }) => args)).toEqual([["u"], ["u"]]);
    expect(noticesOf(build)).toEqual(["2: The group of USER u:g is left out: commands run with the groups of the user u."]);
  });
});

describe("ENTRYPOINT and CMD", () => {
  it.each([
    ["", ""],
    ["CMD a b | c", "a b | c"],
    ['CMD ["a", "b c"]', "a 'b c'"],
    ["CMD a\nCMD b", "b"],
    ["ENTRYPOINT a b\nCMD c", "a b"],
    ['ENTRYPOINT ["a"]\nCMD ["b", "c d"]', "a b 'c d'"],
    ['CMD ["b"]\nENTRYPOINT ["a"]', "a b"],
    ['ENTRYPOINT ["a"]\nCMD b c', "a /bin/sh -c 'b c'"],
    ['ENTRYPOINT []\nCMD ["b"]', "b"],
    ['ENTRYPOINT ["a"]\nCMD []', "a"],
    ["CMD []", ""],
    ['CMD ["a", "$B"]', "a '$B'"],
    ['SHELL ["/bin/ash", "-c"]\nCMD a b', "/bin/ash -c 'a b'"],
    ["CMD exec a \\\n  b", "exec a   b"],
  ])("%j starts %s", (lines, command) => {
    expect(startOf(lines)).toBe(command);
  });

  it("says that a JSON form is none", () => {
    expect(noticesOf(parseDockerfile("FROM a\nCMD ['a', 'b']"))).toEqual([expect.stringMatching(/^2: CMD looks like the JSON form/)]);
  });
});

describe("a problem", () => {
  it.each([
    ["", /^1: There is no FROM/],
    ["FROM", /^1: FROM takes an image/],
    ["FROM a b", /^1: FROM takes an image/],
    ["FROM $X", /^1: FROM uses X, which no ARG/],
    ["ARG X\nFROM $X", /^2: FROM \$X names no image/],
    ["FROM --platform=linux/arm64 a", /^1: FROM --platform=linux\/arm64 is not supported/],
    ["RUN a\nFROM a", /^1: RUN comes before FROM/],
    ["FROM a\nRUN b\n\nFROM c\nRUN d --x", /^4: Multi-stage Dockerfiles are not supported/],
    ["FROM a\nCOPY --from=b /x /y", /^2: COPY --from is not supported. Multi-stage/],
    ["FROM a\nADD https://x.test/y /y", /^2: ADD of a URL is not supported/],
    ["FROM a\nADD git@x.test:y.git /y", /^2: ADD of a URL/],
    ["FROM a\nRUN --mount=type=cache,target=/x y", /^2: RUN --mount is not supported/],
    ["FROM a\nRUN --network=none y", /^2: RUN --network is not supported/],
    ["FROM a\nCOPY --chown a b", /^2: COPY --chown needs a value/],
    ["FROM a\nCOPY --chmod=u+x a b", /^2: --chmod takes an octal mode/],
    ["FROM a\nCOPY --what=1 a b", /^2: COPY --what is not supported/],
    ["FROM a\nCOPY a", /^2: COPY takes at least one source/],
    ["FROM a\nCOPY ../a b", /^2: "\.\.\/a" is outside of the build directory/],
    ["FROM a\nCOPY a/../../b c", /^2: .* is outside/],
    ["FROM a\nCOPY $X b", /^2: The source "\$X" has a variable/],
    ['FROM a\nCOPY "a b" c', /^2: A double quote is never closed/],
    ["FROM a\nENV a", /^2: ENV a has no value/],
    ["FROM a\nENV", /^2: ENV needs a name/],
    ["FROM a\nENV a=1 b", /^2: ENV cannot read "b"/],
    ["FROM a\nENV a='b", /^2: A single quote is never closed/],
    ["FROM a\nENV a=${b", /^2: This is no variable|^2: A "\$\{" has no closing/],
    ['FROM a\nENV a="${b:?set b}"', /^2: The variable b has no value: set b/],
    ["FROM a\nENV a=${PATH:-/bin}", /^2: The PATH of the image is not known/],
    ["FROM a\nARG", /^2: ARG needs a name/],
    ["FROM a\nUSER", /^2: USER needs one name/],
    ["FROM a\nUSER a b", /^2: USER needs one name/],
    ["FROM a\nWORKDIR", /^2: WORKDIR needs a path/],
    ["FROM a\nSHELL bash -c", /^2: SHELL takes the JSON form/],
    ["FROM a\nRUN", /^2: RUN says nothing to run/],
    ["FROM a\nRUN <<EOF\na", /^2: The heredoc <<EOF never ends/],
    ['FROM a\nCOPY <<"a b" /c\nx\na b', /^2: The heredoc|^2: A double quote|^2: /],
    ["FROM a\nRNU x", /^2: "RNU" is no instruction of a Dockerfile. Did you mean RUN\?/],
    ["FROM a\n  apt-get update", /^2: "APT-GET" is no instruction .* A command needs RUN/],
    ["# escape=x\nFROM a", /^1: The escape directive takes/],
    ["FROM a\n\0", /^2: There is a NUL character/],
  ])("%j is reported with its line and the mend", (text, problem) => {
    expect(problemsOf(text)).toEqual([expect.stringMatching(problem)]);
  });

  it("does not hide the ones after it", () => {
    const text = "FROM a\nRUN \\\n  --mount=x y\nENV\nUSER\nRUN a";
    expect(problemsOf(text).map((problem) => problem.slice(0, 6))).toEqual(["2: RUN", "4: ENV", "5: USE"]);
    expect(() => parseDockerfile(text)).toThrow(/^line 2: RUN --mount is not supported.*\nline 4: ENV needs/);
  });

  it("is a build argument with a NUL, or a name that every object has", () => {
    expect(problemsOf("FROM a", { x: "\0" })).toEqual([expect.stringMatching(/^1: A build argument contains a NUL/)]);
    expect(problemsOf("FROM a\nARG constructor\nENV x=$constructor\nCONSTRUCTOR x\n__PROTO__ y")).toHaveLength(2);
  });
});
