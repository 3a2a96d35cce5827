// Messages and what they look like as plain values: times are Dates, durations milliseconds, enumerations names without their
// prefix, contents and filters plain values, the members of a oneof optional members. One converter for each message, made
// from its descriptor at its first use.
import { type DescField, type DescMessage, type Message, ScalarType, create } from "@bufbuild/protobuf";
import { DurationSchema, FieldMaskSchema, TimestampSchema, type Duration, type Timestamp } from "@bufbuild/protobuf/wkt";

import { type Plain, type ReadOptions, decode, encode, isPlainObject, isWellFormed } from "./content.js";
import { listOf, plainOf, plainOfList, plainOfValue, numberOrText, relaxedOf, structOf, valueOf } from "./extended_json.js";
import { InvalidValue } from "./errors.js";
import { ContentSchema } from "./gen/strata/v1/document_pb.js";
import { Time } from "./time.js";

type Any = any;
type Read = (value: Any, options: ReadOptions) => Any;
type Write = (value: Any, at: string) => Any;

const readers = new Map<string, Read>();
const writers = new Map<string, Write>();

const fail = (at: string, problem: string): never => {
  throw new TypeError(`${at} ${problem}`);
};

const timeOf = (value: Timestamp): Time =>
  new Time(Number(value.seconds) * 1000 + Math.floor(value.nanos / 1e6), value.nanos % 1e6);

export function timestampOf(value: Any, at: string): Timestamp {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) return fail(at, "has to be a valid Date");
  const milliseconds = value.getTime();
  const seconds = Math.floor(milliseconds / 1000);
  const nanos = (milliseconds - seconds * 1000) * 1e6 + (value instanceof Time ? value.nanoseconds : 0);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos });
}

export function durationOf(value: Any, at: string): Duration {
  if (typeof value !== "number" || !Number.isFinite(value)) return fail(at, "has to be a number of milliseconds");
  const seconds = Math.trunc(value / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.round((value - seconds * 1000) * 1e6) });
}

function readMessage(desc: DescMessage): Read {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return timeOf;
    case "google.protobuf.Duration":
      return (value: Duration) => Number(value.seconds) * 1000 + value.nanos / 1e6;
    case "google.protobuf.FieldMask":
      return (value) => value.paths;
    case "google.protobuf.Struct":
      return plainOf;
    case "google.protobuf.Value":
      return plainOfValue;
    case "google.protobuf.ListValue":
      return plainOfList;
    case "strata.v1.Content":
      return (value, options) =>
        value.body.case === "bson"
          ? decode(value.body.value, options)
          : value.body.case === "json"
            ? plainOf(value.body.value, options)
            : undefined;
    default:
      return readerOf(desc);
  }
}

function readField(field: DescField): Read | undefined {
  if (field.fieldKind === "message") return readMessage(field.message);
  if (field.fieldKind === "enum") {
    const names = new Map(field.enum.values.map((value) => [value.number, valueName(field.enum, value)]));
    return (value) => names.get(value) ?? `UNKNOWN_${value}`;
  }
  if (field.fieldKind === "list") {
    if (field.listKind === "message") {
      const read = readMessage(field.message);
      return (values, options) => values.map((value: Any) => read(value, options));
    }
    if (field.listKind === "enum") {
      const names = new Map(field.enum.values.map((value) => [value.number, valueName(field.enum, value)]));
      return (values) => values.map((value: number) => names.get(value) ?? `UNKNOWN_${value}`);
    }
  }
  return undefined; // as it is: strings, numbers, bigints, bytes, maps of strings
}

const valueName = (desc: { sharedPrefix?: string }, value: { name: string }): string =>
  value.name.slice(desc.sharedPrefix?.length ?? 0);

const kContents = ["strata.v1.Content", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"];

// The value of a member of an answer for JSON. What holds others has its own toJSON.
function jsonOf(value: Any): Any {
  if (typeof value === "bigint") return numberOrText(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return Array.isArray(value) ? value.map(jsonOf) : value;
}

function toJsonOf(contents: ReadonlySet<string>): PropertyDescriptor {
  const value = function (this: Any): Any {
    const members = Object.entries(this).map(([name, member]) => [name, contents.has(name) ? relaxedOf(member as Plain) : jsonOf(member)]);
    return Object.fromEntries(members);
  };
  return { value, writable: true, configurable: true };
}

const noContents = toJsonOf(new Set());

/** An answer that is made on this side: JSON.stringify takes it as one of the server's. */
export function answerOf<T extends object>(answer: T): T {
  return Object.defineProperty(answer, "toJSON", noContents);
}

function makeReader(desc: DescMessage): Read {
  const plain = desc.fields
    .filter((field) => field.oneof === undefined)
    .map((field) => ({ name: field.localName, read: readField(field) }));
  const oneofs = desc.oneofs.map((oneof) => ({
    name: oneof.localName,
    reads: new Map(oneof.fields.map((field) => [field.localName, readField(field)])),
  }));
  // Not enumerable: answers are compared, copied and printed without it.
  const toJson = toJsonOf(
    new Set(desc.fields.filter((field) => field.message !== undefined && kContents.includes(field.message.typeName)).map((field) => field.localName)),
  );
  return (message, options) => {
    const result: Any = Object.defineProperty({}, "toJSON", toJson);
    for (const { name, read } of plain) {
      const value = message[name];
      result[name] = read === undefined || value === undefined ? value : read(value, options);
    }
    for (const { name, reads } of oneofs) {
      const { case: which, value } = message[name];
      if (which === undefined) continue;
      const read = reads.get(which);
      result[which] = read === undefined ? value : read(value, options);
    }
    return result;
  };
}

function readerOf(desc: DescMessage): Read {
  let made = readers.get(desc.typeName);
  if (made === undefined) {
    // Set before it is made: messages may hold themselves.
    readers.set(desc.typeName, (value, options) => made!(value, options));
    made = makeReader(desc);
    readers.set(desc.typeName, made);
  }
  return made;
}

/** A message as a plain value. */
export function plainMessage<T>(desc: DescMessage, message: Message, options: ReadOptions): T {
  return readerOf(desc)(message, options) as T;
}

function writeMessage(desc: DescMessage): Write {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return timestampOf;
    case "google.protobuf.Duration":
      return durationOf;
    case "google.protobuf.FieldMask":
      return (paths) => create(FieldMaskSchema, { paths });
    case "google.protobuf.Struct":
      return structOf;
    case "google.protobuf.Value":
      return (value) => valueOf(value);
    case "google.protobuf.ListValue":
      return listOf;
    case "strata.v1.Content":
      return contentOf;
    case "strata.v1.LeaseToken": {
      const write = writerOf(desc);
      // Of a Lease its name and token: its position is where it stands, that of a token moves it.
      return (value, at) => write(value instanceof Object && "holder" in value ? { name: value.name, token: value.token } : value, at);
    }
    default: {
      const typeName = desc.typeName;
      writerOf(desc);
      return (value, at) => writers.get(typeName)!(value, at);
    }
  }
}

export const contentOf = (value: unknown): Any => create(ContentSchema, { body: { case: "bson", value: encode(value) } });

function writeScalar(type: ScalarType): Write {
  switch (type) {
    case ScalarType.STRING:
      return (value, at) => {
        if (typeof value !== "string") fail(at, "has to be a string");
        if (!isWellFormed(value)) fail(at, "is not UTF-8 (a lone surrogate)");
        return value;
      };
    case ScalarType.BOOL:
      return (value, at) => (typeof value === "boolean" ? value : fail(at, "has to be true or false"));
    case ScalarType.BYTES:
      return (value, at) => (value instanceof Uint8Array ? value : fail(at, "has to be a Uint8Array"));
    case ScalarType.INT64:
      return (value, at) => {
        if (typeof value === "number" && !Number.isSafeInteger(value)) fail(at, "has to be an integer that a number holds, or a bigint");
        if (typeof value !== "number" && typeof value !== "bigint") fail(at, "has to be a bigint or number");
        const integer = BigInt(value);
        return BigInt.asIntN(64, integer) === integer ? integer : fail(at, "is beyond int64");
      };
    default:
      return (value, at) =>
        Number.isInteger(value) && value === (value | 0) ? value : fail(at, "has to be an integer of 32 bits");
  }
}

function writeOne(field: DescField, kind: string): Write {
  if (kind === "message") return writeMessage(field.message!);
  if (kind === "enum") {
    const desc = field.enum!;
    const numbers = new Map(desc.values.map((value) => [valueName(desc, value), value.number]));
    const known = [...numbers.keys()].join(", ");
    return (value, at) => numbers.get(value) ?? fail(at, `has to be one of ${known}`);
  }
  return writeScalar(field.scalar!);
}

function writeField(field: DescField): Write {
  if (field.fieldKind === "list") {
    const write = writeOne(field, field.listKind);
    return (values, at) => {
      if (!Array.isArray(values)) fail(at, "has to be an array");
      return values.map((value: Any, index: number) => write(value, `${at}[${index}]`));
    };
  }
  if (field.fieldKind === "map") {
    const text = writeScalar(ScalarType.STRING);
    return (value, at) => {
      if (typeof value !== "object" || value === null || !isPlainObject(value)) fail(at, "has to be an object of strings");
      for (const [name, member] of Object.entries(value)) text(member, `${at}.${text(name, at)}`);
      return { ...value };
    };
  }
  return writeOne(field, field.fieldKind);
}

function writerOf(desc: DescMessage): Write {
  const known = writers.get(desc.typeName);
  if (known !== undefined) return known;
  const fields = new Map<string, { oneof: string | undefined; write: Write }>();
  const writer: Write = (value, at) => {
    if (typeof value !== "object" || value === null || !isPlainObject(value)) fail(at, "has to be an object");
    const init: Any = {};
    for (const name of Object.keys(value)) {
      const member = value[name];
      if (member === undefined) continue;
      const field = fields.get(name) ?? fail(at === "" ? "the options" : at, `cannot have ${name}`);
      const written = field.write(member, at === "" ? name : `${at}.${name}`);
      if (field.oneof === undefined) {
        init[name] = written;
      } else {
        if (init[field.oneof] !== undefined) fail(at === "" ? name : `${at}.${name}`, `cannot go together with ${init[field.oneof].case}`);
        init[field.oneof] = { case: name, value: written };
      }
    }
    return create(desc, init);
  };
  // The path of a value within an operation goes on where the operation's ends.
  const operation: Write = (value, at) => {
    try {
      return writer(value, at);
    } catch (error) {
      if (!(error instanceof InvalidValue) || typeof value?.path !== "string") throw error;
      throw new InvalidValue(value.path + error.path, error.problem);
    }
  };
  const made = desc.typeName === "strata.v1.Operation" ? operation : writer;
  writers.set(desc.typeName, made);
  for (const field of desc.fields) {
    fields.set(field.localName, { oneof: field.oneof?.localName, write: writeField(field) });
  }
  return made;
}

/** A plain value as a message. Throws a TypeError for members that the message does not have, or that are of another type. */
export function messageOf(desc: DescMessage, value: object): Message {
  return writerOf(desc)(value, "");
}
