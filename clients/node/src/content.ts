// Contents: plain values to BSON and back, exactly, with every value that BSON cannot hold refused by name before it is sent.
import {
  BSONRegExp,
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  UUID,
} from "bson";

import { InvalidValue } from "./errors.js";
import { Time } from "./time.js";

/** A date that BSON holds and Date does not: beyond 8.64e15 milliseconds from 1970. */
export class WideDate {
  constructor(readonly milliseconds: bigint) {}
}

/** A value of a content. */
export type Plain =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | WideDate
  | Uint8Array
  | Binary
  | ObjectId
  | Decimal128
  | Double
  | Int32
  | Long
  | BSONRegExp
  | Timestamp
  | MinKey
  | MaxKey
  | Plain[]
  | Map<string, Plain>
  | { [name: string]: Plain | undefined };

/** How contents are read. */
export interface ReadOptions {
  /** The type that an int64 becomes. Default: "bigint". */
  int64?: "bigint" | "long";
  /** true: objects become Maps, which keep the order of all names; plain objects put names such as "10" first. */
  ordered?: boolean;
  /** The type of a double that is whole and within int32: "double" keeps it from being written again as an int32. Default: "number". */
  wholeDoubles?: "number" | "double";
}

const kBytesMax = 2 * 1024 * 1024;
const kDepthMax = 24;
const kDateMax = 8.64e15;

export function pointerOf(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replace(/~/g, "~0").replace(/\//g, "~1")}`).join("");
}

// A surrogate without its other half has no UTF-8 form; Buffer would silently write U+FFFD.
export function isWellFormed(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    if (unit > 0xdbff) return false;
    const next = text.charCodeAt(++i);
    if (!(next >= 0xdc00 && next <= 0xdfff)) return false;
  }
  return true;
}

export function bsonType(value: object): string | undefined {
  const type = (value as { _bsontype?: unknown })._bsontype;
  return typeof type === "string" ? type : undefined;
}

export function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  // An object of another realm (a test's sandbox, a worker's) has another Object.prototype, which has no prototype either.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

// Checks that hold in BSON and in Extended JSON alike; both writers walk with it.
export class Walk {
  readonly path: (string | number)[] = [];
  private readonly within: object[] = [];

  refuse(problem: string): never {
    throw new InvalidValue(pointerOf(this.path), problem);
  }

  enter(value: object): void {
    if (this.within.includes(value)) this.refuse("is within itself");
    if (this.within.length >= kDepthMax) this.refuse(`is nested deeper than ${kDepthMax} levels`);
    this.within.push(value);
  }

  leave(): void {
    this.within.pop();
  }

  name(name: unknown): string {
    if (typeof name !== "string") return this.refuse("is a Map with a name that is no string");
    this.path.push(name);
    if (name.includes("\0")) this.refuse("has a zero byte in its name");
    if (!isWellFormed(name)) this.refuse("has a name that is not UTF-8 (a lone surrogate)");
    return name;
  }

  text(text: string): string {
    if (!isWellFormed(text)) this.refuse("is not UTF-8 (a lone surrogate)");
    return text;
  }

  int64(value: bigint): bigint {
    if (value < -(2n ** 63n) || value >= 2n ** 63n) this.refuse("is an integer beyond int64");
    return value;
  }

  number(value: number): number {
    if (!Number.isFinite(value)) this.refuse(`is ${value}`);
    return value;
  }

  date(value: Date): bigint {
    const milliseconds = value.getTime();
    if (Number.isNaN(milliseconds)) this.refuse("is an invalid Date");
    if (value instanceof Time && value.nanoseconds !== 0) {
      this.refuse("is a Time with microseconds, which a BSON date does not keep; new Date(time.getTime()) has none");
    }
    return BigInt(milliseconds);
  }

  // Refuses objects that are no plain objects: what a class means, its members alone do not tell.
  plain(value: object): void {
    if (!isPlainObject(value)) {
      const name = (value as { constructor?: { name?: string } }).constructor?.name || "a class of its own";
      this.refuse(`is an instance of ${name}, which has no meaning as a document; make it a plain object`);
    }
    for (const symbol of Object.getOwnPropertySymbols(value)) {
      if (Object.prototype.propertyIsEnumerable.call(value, symbol)) this.refuse("has a member whose name is a symbol");
    }
  }

  // The elements of an array; every index up to its length has to have one.
  element(value: readonly unknown[], index: number): unknown {
    this.path.push(index);
    if (!(index in value)) this.refuse("is a hole of a sparse array");
    if (value[index] === undefined) this.refuse("is undefined");
    return value[index];
  }
}

class Writer {
  private buffer = Buffer.allocUnsafe(512);
  private length = 0;
  private readonly walk = new Walk();

  constructor(root: (string | number)[]) {
    this.walk.path.push(...root);
  }

  document(value: object): Uint8Array {
    this.object(value);
    return this.buffer.subarray(0, this.length);
  }

  private room(bytes: number): void {
    const needed = this.length + bytes;
    if (needed > kBytesMax + 16) this.walk.refuse("takes the document past 2 MiB");
    if (needed <= this.buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(larger, 0, 0, this.length);
    this.buffer = larger;
  }

  private byte(value: number): void {
    this.room(1);
    this.buffer[this.length++] = value;
  }

  private int32(value: number): void {
    this.room(4);
    this.length = this.buffer.writeInt32LE(value, this.length);
  }

  private int64(value: bigint): void {
    this.room(8);
    this.length = this.buffer.writeBigInt64LE(value, this.length);
  }

  private raw(bytes: Uint8Array): void {
    this.room(bytes.length);
    this.buffer.set(bytes, this.length);
    this.length += bytes.length;
  }

  // Room for a text and its end, without counting its bytes where that does not matter.
  private roomFor(text: string): void {
    const most = text.length * 3 + 1;
    this.room(most <= 4096 && this.length + most <= kBytesMax ? most : Buffer.byteLength(text) + 1);
  }

  private cstring(text: string): void {
    this.roomFor(text);
    this.length += this.buffer.write(text, this.length);
    this.buffer[this.length++] = 0;
  }

  private string(text: string): void {
    this.walk.text(text);
    const at = this.length;
    this.int32(0);
    this.roomFor(text);
    const written = this.buffer.write(text, this.length);
    this.length += written;
    this.buffer[this.length++] = 0;
    this.buffer.writeInt32LE(written + 1, at);
  }

  // The type's byte comes before the name and is known after the value was looked at.
  private head(type: number, name: string): void {
    this.byte(type);
    this.cstring(name);
  }

  private close(at: number): void {
    this.byte(0);
    if (this.length > kBytesMax) this.walk.refuse("takes the document past 2 MiB");
    this.buffer.writeInt32LE(this.length - at, at);
  }

  private object(value: object): void {
    this.walk.enter(value);
    const at = this.length;
    this.int32(0);
    // Members that are undefined are left out, as JSON.stringify does.
    if (value instanceof Map) {
      for (const [name, member] of value) if (member !== undefined) this.named(name, member);
    } else {
      this.walk.plain(value);
      for (const name of Object.keys(value)) {
        const member = (value as Record<string, unknown>)[name];
        if (member !== undefined) this.named(name, member);
      }
    }
    this.close(at);
    this.walk.leave();
  }

  private named(name: unknown, member: unknown): void {
    this.member(this.walk.name(name), member);
    this.walk.path.pop();
  }

  private array(value: readonly unknown[]): void {
    this.walk.enter(value);
    const at = this.length;
    this.int32(0);
    for (let index = 0; index < value.length; index++) {
      this.member(String(index), this.walk.element(value, index));
      this.walk.path.pop();
    }
    this.close(at);
    this.walk.leave();
  }

  private member(name: string, value: unknown): void {
    switch (typeof value) {
      case "string":
        this.head(0x02, name);
        return this.string(value);
      case "number":
        if (Number.isInteger(value) && value >= -0x80000000 && value <= 0x7fffffff && !Object.is(value, -0)) {
          this.head(0x10, name);
          return this.int32(value);
        }
        return this.double(name, this.walk.number(value));
      case "boolean":
        this.head(0x08, name);
        return this.byte(value ? 1 : 0);
      case "bigint":
        this.head(0x12, name);
        return this.int64(this.walk.int64(value));
      case "object":
        if (value === null) return this.head(0x0a, name);
        return this.structure(name, value);
      default:
        return this.walk.refuse(`is a ${typeof value}, which has no BSON type`);
    }
  }

  private double(name: string, value: number): void {
    this.head(0x01, name);
    this.room(8);
    this.length = this.buffer.writeDoubleLE(value, this.length);
  }

  private binary(name: string, bytes: Uint8Array, subType: number): void {
    this.head(0x05, name);
    this.int32(bytes.length);
    this.byte(subType);
    this.raw(bytes);
  }

  private structure(name: string, value: object): void {
    if (Array.isArray(value)) {
      this.head(0x04, name);
      return this.array(value);
    }
    if (value instanceof Uint8Array) return this.binary(name, value, 0);
    if (value instanceof Date) {
      this.head(0x09, name);
      return this.int64(this.walk.date(value));
    }
    if (value instanceof WideDate) {
      this.head(0x09, name);
      return this.int64(this.walk.int64(value.milliseconds));
    }
    const type = bsonType(value);
    if (type !== undefined && !isPlainObject(value)) return this.bson(name, type, value);
    this.head(0x03, name);
    return this.object(value);
  }

  private bson(name: string, type: string, value: object): void {
    switch (type) {
      case "ObjectId":
        this.head(0x07, name);
        return this.raw((value as ObjectId).id);
      case "Decimal128":
        this.head(0x13, name);
        if (!/\d/.test((value as Decimal128).toString())) this.walk.refuse(`is ${value}`);
        return this.raw((value as Decimal128).bytes);
      case "Long":
        this.head(0x12, name);
        return this.int64((value as Long).toBigInt());
      case "Int32":
        this.head(0x10, name);
        return this.int32((value as Int32).value);
      case "Double":
        return this.double(name, this.walk.number((value as Double).value));
      case "Binary": {
        const binary = value as Binary;
        return this.binary(name, binary.buffer.subarray(0, binary.position), binary.sub_type);
      }
      case "BSONRegExp": {
        const { pattern, options } = value as BSONRegExp;
        this.walk.text(pattern);
        if (pattern.includes("\0") || options.includes("\0")) this.walk.refuse("is a pattern with a zero byte");
        this.head(0x0b, name);
        this.cstring(pattern);
        return this.cstring(options);
      }
      case "Timestamp":
        this.head(0x11, name);
        return this.int64(BigInt.asIntN(64, (value as Timestamp).toBigInt()));
      case "MinKey":
        return this.head(0xff, name);
      case "MaxKey":
        return this.head(0x7f, name);
      default:
        return this.walk.refuse(`is a ${type} of bson, which documents cannot hold`);
    }
  }
}

/** A content as BSON. Throws InvalidValue, which names the path, for a value that BSON cannot hold. */
export function encode(value: unknown, root: (string | number)[] = []): Uint8Array {
  if (typeof value !== "object" || value === null || Array.isArray(value) || (bsonType(value) && !isPlainObject(value))) {
    throw new InvalidValue(pointerOf(root), "is no object: a content is an object");
  }
  return new Writer(root).document(value);
}

class Reader {
  private at = 0;

  constructor(
    private readonly buffer: Buffer,
    private readonly options: ReadOptions,
  ) {}

  document(): Plain {
    return this.object();
  }

  private cstring(): string {
    const end = this.buffer.indexOf(0, this.at);
    if (end < 0) throw new RangeError("the BSON of an answer is damaged");
    const text = this.buffer.toString("utf8", this.at, end);
    this.at = end + 1;
    return text;
  }

  private int32(): number {
    const value = this.buffer.readInt32LE(this.at);
    this.at += 4;
    return value;
  }

  private int64(): bigint {
    const value = this.buffer.readBigInt64LE(this.at);
    this.at += 8;
    return value;
  }

  private raw(length: number): Buffer {
    if (length < 0 || this.at + length > this.buffer.length) throw new RangeError("the BSON of an answer is damaged");
    const bytes = this.buffer.subarray(this.at, this.at + length);
    this.at += length;
    return bytes;
  }

  private object(): Plain {
    this.at += 4;
    if (this.options.ordered) {
      const map = new Map<string, Plain>();
      for (let type = this.buffer[this.at++]; type !== 0; type = this.buffer[this.at++]) {
        const name = this.cstring();
        map.set(name, this.value(type));
      }
      return map;
    }
    const object: { [name: string]: Plain } = {};
    for (let type = this.buffer[this.at++]; type !== 0; type = this.buffer[this.at++]) {
      const name = this.cstring();
      const value = this.value(type);
      if (name === "__proto__") {
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      } else {
        object[name] = value;
      }
    }
    return object;
  }

  private array(): Plain[] {
    this.at += 4;
    const array: Plain[] = [];
    for (let type = this.buffer[this.at++]; type !== 0; type = this.buffer[this.at++]) {
      this.at = this.buffer.indexOf(0, this.at) + 1;
      array.push(this.value(type));
    }
    return array;
  }

  private value(type: number | undefined): Plain {
    switch (type) {
      case 0x01: {
        const value = this.buffer.readDoubleLE(this.at);
        this.at += 8;
        if (this.options.wholeDoubles === "double" && value === (value | 0) && !Object.is(value, -0)) return new Double(value);
        return value;
      }
      case 0x02: {
        const length = this.int32();
        const text = this.buffer.toString("utf8", this.at, this.at + length - 1);
        this.at += length;
        return text;
      }
      case 0x03:
        return this.object();
      case 0x04:
        return this.array();
      case 0x05: {
        const length = this.int32();
        const subType = this.buffer[this.at++];
        const bytes = Buffer.from(this.raw(length));
        if (subType === 0) return bytes;
        return subType === 4 && length === 16 ? new UUID(bytes) : new Binary(bytes, subType);
      }
      case 0x07:
        return new ObjectId(Uint8Array.from(this.raw(12)));
      case 0x08:
        return this.buffer[this.at++] === 1;
      case 0x09: {
        const milliseconds = this.int64();
        const number = Number(milliseconds);
        return Math.abs(number) <= kDateMax ? new Date(number) : new WideDate(milliseconds);
      }
      case 0x0a:
        return null;
      case 0x0b:
        return new BSONRegExp(this.cstring(), this.cstring());
      case 0x10:
        return this.int32();
      case 0x11:
        return new Timestamp(BigInt.asUintN(64, this.int64()));
      case 0x12: {
        const value = this.int64();
        return this.options.int64 === "long" ? Long.fromBigInt(value) : value;
      }
      case 0x13:
        return new Decimal128(Uint8Array.from(this.raw(16)));
      case 0x7f:
        return new MaxKey();
      case 0xff:
        return new MinKey();
      default:
        throw new RangeError(`the BSON of an answer has a type that this client does not know: ${type}`);
    }
  }
}

/** BSON as a plain value. */
export function decode(bytes: Uint8Array, options: ReadOptions = {}): Plain {
  return new Reader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), options).document();
}
