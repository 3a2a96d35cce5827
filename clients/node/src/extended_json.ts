// Filters and the values of operations travel as google.protobuf.Struct and Value, which have doubles only: what is more is
// written as Extended JSON, both ways.
import { type JsonObject, type JsonValue, create, fromJson, toJson } from "@bufbuild/protobuf";
import { type ListValue, ListValueSchema, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { BSONRegExp, Binary, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from "bson";

import { type Plain, type ReadOptions, Walk, WideDate, bsonType, isPlainObject } from "./content.js";

const doubleText = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e21 ? (Object.is(value, -0) ? "-0.0" : value.toFixed(1)) : String(value);

function numberOf(value: number, walk: Walk): JsonValue {
  walk.number(value);
  // The server takes whole numbers for integers; as in BSON, those beyond int32 are doubles here.
  const int32 = Number.isInteger(value) && value >= -0x80000000 && value <= 0x7fffffff && !Object.is(value, -0);
  return int32 || !Number.isInteger(value) ? value : { $numberDouble: doubleText(value) };
}

function bsonOf(type: string, value: object, walk: Walk): JsonValue {
  switch (type) {
    case "ObjectId":
      return { $oid: (value as ObjectId).toHexString() };
    case "Decimal128":
      if (!/\d/.test((value as Decimal128).toString())) walk.refuse(`is ${value}`);
      return { $numberDecimal: (value as Decimal128).toString() };
    case "Long":
      return { $numberLong: (value as Long).toString() };
    case "Int32":
      return (value as Int32).value;
    case "Double":
      return { $numberDouble: doubleText(walk.number((value as Double).value)) };
    case "Binary": {
      const binary = value as Binary;
      const bytes = Buffer.from(binary.buffer.subarray(0, binary.position));
      return { $binary: { base64: bytes.toString("base64"), subType: binary.sub_type.toString(16).padStart(2, "0") } };
    }
    case "BSONRegExp":
      return { $regularExpression: { pattern: (value as BSONRegExp).pattern, options: (value as BSONRegExp).options } };
    case "Timestamp":
      return { $timestamp: { t: (value as Timestamp).high >>> 0, i: (value as Timestamp).low >>> 0 } };
    case "MinKey":
      return { $minKey: 1 };
    case "MaxKey":
      return { $maxKey: 1 };
    default:
      return walk.refuse(`is a ${type} of bson, which documents cannot hold`);
  }
}

function jsonOf(value: unknown, walk: Walk): JsonValue {
  switch (typeof value) {
    case "string":
      return walk.text(value);
    case "boolean":
      return value;
    case "number":
      return numberOf(value, walk);
    case "bigint":
      return { $numberLong: walk.int64(value).toString() };
    case "object":
      break;
    default:
      return walk.refuse(`is ${value === undefined ? "undefined" : `a ${typeof value}`}, which has no BSON type`);
  }
  if (value === null) return null;
  if (value instanceof Date) return { $date: { $numberLong: walk.date(value).toString() } };
  if (value instanceof WideDate) return { $date: { $numberLong: walk.int64(value.milliseconds).toString() } };
  if (value instanceof Uint8Array) return { $binary: { base64: Buffer.from(value).toString("base64"), subType: "00" } };
  const type = bsonType(value);
  if (type !== undefined && !isPlainObject(value)) return bsonOf(type, value, walk);
  walk.enter(value);
  let json: JsonValue;
  if (Array.isArray(value)) {
    json = [];
    for (let index = 0; index < value.length; index++) {
      json.push(jsonOf(walk.element(value, index), walk));
      walk.path.pop();
    }
  } else {
    json = {};
    if (!(value instanceof Map)) walk.plain(value);
    for (const [name, member] of value instanceof Map ? value : Object.entries(value)) {
      if (member === undefined) continue;
      walk.name(name);
      // Libraries between here and the wire would set the prototype of an object with it.
      if (name === "__proto__") walk.refuse("is called __proto__, which filters and operations cannot hold; use replace or merge");
      json[name] = jsonOf(member, walk);
      walk.path.pop();
    }
  }
  walk.leave();
  return json;
}

const isSafe = (value: bigint): boolean => value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER;

/** An integer for JSON: a number where that is exact, else its digits. */
export const numberOrText = (value: bigint): number | string => (isSafe(value) ? Number(value) : value.toString());

function relaxedDate(milliseconds: bigint): JsonValue {
  const year = new Date(Number(milliseconds)).getUTCFullYear();
  return { $date: year >= 1970 && year <= 9999 ? new Date(Number(milliseconds)).toISOString() : { $numberLong: milliseconds.toString() } };
}

/** A content as relaxed Extended JSON: plain numbers, but int64 that a number does not hold as $numberLong. */
export function relaxedOf(value: Plain | undefined): JsonValue | undefined {
  if (typeof value === "bigint") return isSafe(value) ? Number(value) : { $numberLong: value.toString() };
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return relaxedDate(BigInt(value.getTime()));
  if (value instanceof WideDate) return relaxedDate(value.milliseconds);
  if (value instanceof Uint8Array) return { $binary: { base64: Buffer.from(value).toString("base64"), subType: "00" } };
  if (value instanceof Long) return relaxedOf(value.toBigInt());
  if (value instanceof Double) return value.value;
  const type = bsonType(value);
  if (type !== undefined && !isPlainObject(value)) return bsonOf(type, value, new Walk());
  if (Array.isArray(value)) return value.map((element) => relaxedOf(element)!);
  const members = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(members.map(([name, member]) => [name, relaxedOf(member)!]));
}

/** A filter, or another object, as google.protobuf.Struct. */
export function structOf(value: unknown): JsonObject {
  const walk = new Walk();
  if (typeof value !== "object" || value === null || Array.isArray(value) || (bsonType(value) && !isPlainObject(value))) {
    walk.refuse("is no object");
  }
  return jsonOf(value, walk) as JsonObject;
}

export function valueOf(value: unknown, root: readonly (string | number)[] = []): Value {
  const walk = new Walk();
  walk.path.push(...root);
  return fromJson(ValueSchema, jsonOf(value, walk));
}

export function listOf(values: readonly unknown[]): ListValue {
  return create(ListValueSchema, { values: values.map((value, index) => valueOf(value, [index])) });
}

const only = (object: { [name: string]: unknown }, ...names: string[]): boolean => {
  const present = Object.keys(object);
  return present.length === names.length && names.every((name) => name in object);
};

/** Extended JSON of the server as a plain value. */
export function plainOf(json: JsonValue, options: ReadOptions): Plain {
  // The server writes whole doubles with a wrapper: a whole number beyond int32 is an int64.
  if (typeof json === "number" && Number.isInteger(json) && json !== (json | 0)) {
    return options.int64 === "long" ? Long.fromNumber(json) : BigInt(json);
  }
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map((element) => plainOf(element, options));
  const o = json as { [name: string]: any };
  if (only(o, "$numberLong")) return options.int64 === "long" ? Long.fromString(o.$numberLong) : BigInt(o.$numberLong);
  if (only(o, "$numberInt")) return Number(o.$numberInt);
  if (only(o, "$numberDouble")) {
    const value = Number(o.$numberDouble);
    const whole = value === (value | 0) && !Object.is(value, -0);
    return options.wholeDoubles === "double" && whole ? new Double(value) : value;
  }
  if (only(o, "$numberDecimal")) return Decimal128.fromString(o.$numberDecimal);
  if (only(o, "$oid")) return new ObjectId(o.$oid as string);
  if (only(o, "$date")) {
    if (typeof o.$date === "string") return new Date(o.$date);
    const milliseconds = BigInt(o.$date.$numberLong);
    const date = new Date(Number(milliseconds));
    return Number.isNaN(date.getTime()) ? new WideDate(milliseconds) : date;
  }
  if (only(o, "$binary")) {
    const bytes = Buffer.from(o.$binary.base64, "base64");
    const subType = parseInt(o.$binary.subType, 16);
    return subType === 0 ? bytes : subType === 4 && bytes.length === 16 ? new UUID(bytes) : new Binary(bytes, subType);
  }
  if (only(o, "$regularExpression")) return new BSONRegExp(o.$regularExpression.pattern, o.$regularExpression.options);
  if (only(o, "$timestamp")) return new Timestamp({ t: o.$timestamp.t, i: o.$timestamp.i });
  if (only(o, "$minKey")) return new MinKey();
  if (only(o, "$maxKey")) return new MaxKey();
  const members = Object.entries(json).map(([name, member]) => [name, plainOf(member, options)] as const);
  if (options.ordered) return new Map(members);
  return Object.fromEntries(members);
}

export const plainOfValue = (value: Value, options: ReadOptions): Plain => plainOf(toJson(ValueSchema, value), options);

export const plainOfList = (list: ListValue, options: ReadOptions): Plain[] =>
  plainOf(toJson(ListValueSchema, list), options) as Plain[];
