import { randomBytes } from "node:crypto";
import { Duplex } from "node:stream";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { readClientHello } from "./client-hello.ts";

/** The first message of a real client. */
async function helloOf(servername: string | undefined): Promise<Buffer> {
  return await new Promise((resolve) => {
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        resolve(chunk);
        done();
      },
    });
    connect({ socket: wire, ...(servername === undefined ? {} : { servername }) }).on("error", () => {});
  });
}

function inRecords(message: Buffer, size: number): Buffer {
  const pieces = Array.from({ length: Math.ceil(message.length / size) }, (_, at) => message.subarray(at * size, (at + 1) * size));
  return Buffer.concat(pieces.flatMap((piece) => [Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 255]), piece]));
}

const number = (value: number, size: number) => {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
};
const vector = (size: number, ...content: Buffer[]) => {
  const all = Buffer.concat(content);
  return Buffer.concat([number(all.length, size), all]);
};
const extension = (type: number, ...content: Buffer[]) => Buffer.concat([number(type, 2), vector(2, ...content)]);
const serverName = (...names: string[]) =>
  extension(0, vector(2, ...names.map((name) => Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name))]))));
/** A hand-made message with these extensions. */
const message = (...extensions: Buffer[]) => {
  const body = [Buffer.alloc(34), vector(1), vector(2, Buffer.from([0x13, 1])), vector(1, Buffer.from([0])), vector(2, ...extensions)];
  return Buffer.concat([Buffer.from([1]), vector(3, ...body)]);
};
const read = (...extensions: Buffer[]) => readClientHello(inRecords(message(...extensions), 16_000));

test("the name of a real client is found as soon as its message is complete, and not before", async () => {
  const hello = await helloOf("good.example");
  expect(readClientHello(hello)).toEqual({ kind: "hello", name: "good.example", isEncrypted: false });
  for (let end = 0; end < hello.length; end += 1)
    expect(readClientHello(hello.subarray(0, end)), String(end)).toEqual({ kind: "incomplete" });
  expect(readClientHello(Buffer.concat([hello, randomBytes(10)])).kind).toBe("no_tls");
});

test("a message in records of any size has the same name", async () => {
  const content = (await helloOf("good.example")).subarray(5);
  for (const size of [1, 2, 3, 7, 100]) expect(readClientHello(inRecords(content, size))).toMatchObject({ name: "good.example" });
});

test("a client may name no server", async () => {
  expect(await helloOf(undefined).then(readClientHello)).toEqual({ kind: "hello", name: undefined, isEncrypted: false });
  expect(read()).toEqual({ kind: "hello", name: undefined, isEncrypted: false });
});

test("an encrypted hello is noticed", () => {
  expect(read(serverName("outer.example"), extension(0xfe0d, Buffer.alloc(9)))).toEqual({
    kind: "hello",
    name: "outer.example",
    isEncrypted: true,
  });
});

test.each<[string, Buffer]>([
  ["two names", inRecords(message(serverName("a.example", "b.example")), 99)],
  ["two lists of names", inRecords(message(serverName("a.example"), serverName("b.example")), 99)],
  ["no name in the list", inRecords(message(serverName()), 99)],
  ["an extension that is longer than the message", inRecords(message(Buffer.from([0, 0, 0, 99])), 99)],
  ["bytes after the extensions", inRecords(Buffer.concat([Buffer.from([1]), vector(3, message().subarray(4), Buffer.from([0]))]), 99)],
  ["an alert", Buffer.from([21, 3, 3, 0, 2, 2, 40])],
  ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
  ["a record that is too long", Buffer.from([22, 3, 1, 0xff, 0xff])],
  ["another message", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
  ["a message that is too long", Buffer.from([22, 3, 1, 0, 4, 1, 0xff, 0, 0])],
  ["HTTP", Buffer.from("GET / HTTP/1.1\r\nHost: good.example\r\n\r\n")],
  ["SSH", Buffer.from("SSH-2.0-OpenSSH\r\n")],
])("%s is refused", (_what, bytes) => {
  expect(readClientHello(bytes)).toEqual({ kind: "no_tls" });
});

test("no bytes at all make it throw", async () => {
  const hello = await helloOf("good.example");
  for (let round = 0; round < 2_000; round += 1) {
    const broken = Buffer.from(hello);
    for (let flips = 0; flips < 1 + (round % 5); flips += 1) broken[5 + Math.floor(Math.random() * (broken.length - 5))] = round % 256;
    expect(["hello", "incomplete", "no_tls"]).toContain(readClientHello(broken).kind);
  }
});
