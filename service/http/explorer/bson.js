// Contents as they are stored: BSON to the byte, with the order of members, the width of integers, decimals and dates to the millisecond.
// JSON in a browser would round whole numbers from 2^53 on and put members named like numbers first.
//
// A value is null, true or false, a string, a list, a Map (of an object, in order), or a Typed: what has no JSON type of its own, as text.

/** A number, date, decimal, ... `text` is what is shown and compared; of integers, whatever their width, `type` is "int". */
export class Typed {
  constructor(type, text, note = "") {
    this.type = type;
    this.text = text;
    this.note = note;
  }
}

export const integer = (text, width = "") => new Typed("int", text, width);

/** A double's text, which always shows that it is one. */
export function double(number) {
  if (!Number.isInteger(number)) return new Typed("double", String(number));
  if (Object.is(number, -0)) return new Typed("double", "-0.0");
  return new Typed("double", Math.abs(number) < 1e21 ? number.toFixed(1) : String(number));
}

export function date(milliseconds) {
  const number = Number(milliseconds);
  const text = Math.abs(number) <= 8.64e15 ? new Date(number).toISOString() : `${milliseconds} ms`;
  return new Typed("date", text);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }
  take(length) {
    if (length < 0 || this.at + length > this.bytes.length) throw new RangeError("the content ends early");
    this.at += length;
    return this.at - length;
  }
  int32() {
    return this.view.getInt32(this.take(4), true);
  }
  int64() {
    return this.view.getBigInt64(this.take(8), true);
  }
  cString() {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0) throw new RangeError("a name does not end");
    const text = utf8.decode(this.bytes.subarray(this.at, end));
    this.at = end + 1;
    return text;
  }
  string() {
    const length = this.int32();
    const start = this.take(length);
    return utf8.decode(this.bytes.subarray(start, start + length - 1));
  }
  raw(length) {
    const start = this.take(length);
    return this.bytes.subarray(start, start + length);
  }
}

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function base64Of(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** A decimal128 (IEEE 754-2008, as a binary integer) as text, written as Extended JSON's $numberDecimal is. */
export function decimalText(low, high) {
  const sign = high >> 63n ? "-" : "";
  const combination = (high >> 58n) & 0x1fn;
  if (combination >> 1n === 0b1111n) return combination & 1n ? "NaN" : `${sign}Infinity`;
  const large = combination >> 3n === 3n;
  const exponent = Number((high >> (large ? 47n : 49n)) & 0x3fffn) - 6176;
  // What is written with the larger exponent field claims more than 34 digits, which the standard reads as zero.
  const significand = large ? 0n : ((high & 0x1ffffffffffffn) << 64n) | low;
  const digits = significand.toString();
  const scientific = exponent + digits.length - 1;
  if (exponent > 0 || scientific < -6) {
    const mantissa = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits;
    return `${sign}${mantissa}E${scientific >= 0 ? "+" : ""}${scientific}`;
  }
  if (exponent === 0) return sign + digits;
  const padded = digits.padStart(1 - exponent, "0");
  return `${sign}${padded.slice(0, exponent)}.${padded.slice(exponent)}`;
}

export const binary = (base64, subtype, length) => new Typed("binary", base64, `subtype ${subtype}, ${length} bytes`);

function valueOf(reader, type) {
  switch (type) {
    case 0x01:
      return double(reader.view.getFloat64(reader.take(8), true));
    case 0x02:
      return reader.string();
    case 0x03:
      return documentOf(reader, false);
    case 0x04:
      return documentOf(reader, true);
    case 0x05: {
      const length = reader.int32();
      const subtype = reader.bytes[reader.take(1)];
      return binary(base64Of(reader.raw(length)), subtype.toString(16).padStart(2, "0"), length);
    }
    case 0x07:
      return new Typed("objectId", hexOf(reader.raw(12)));
    case 0x08:
      return reader.bytes[reader.take(1)] !== 0;
    case 0x09:
      return date(reader.int64());
    case 0x0a:
      return null;
    case 0x0b:
      return new Typed("regex", `/${reader.cString()}/${reader.cString()}`);
    case 0x10:
      return integer(String(reader.int32()), "int32");
    case 0x11: {
      const increment = reader.view.getUint32(reader.take(4), true);
      return new Typed("timestamp", `${reader.view.getUint32(reader.take(4), true)}, ${increment}`);
    }
    case 0x12:
      return integer(String(reader.int64()), "int64");
    case 0x13: {
      const low = reader.view.getBigUint64(reader.take(8), true);
      return new Typed("decimal", decimalText(low, reader.view.getBigUint64(reader.take(8), true)));
    }
    case 0xff:
      return new Typed("minKey", "");
    case 0x7f:
      return new Typed("maxKey", "");
    default:
      throw new RangeError(`BSON type ${type} is not known here`);
  }
}

function documentOf(reader, list) {
  const end = reader.at + reader.int32() - 1;
  const result = list ? [] : new Map();
  while (reader.at < end) {
    const type = reader.bytes[reader.take(1)];
    const name = reader.cString();
    const value = valueOf(reader, type);
    if (list) result.push(value);
    else result.set(name, value);
  }
  reader.take(1);
  return result;
}

/** The value of a Content of an answer; undefined where there is none. */
export function contentOf(content) {
  if (content === undefined || content === null) return undefined;
  if (content.bson !== undefined) {
    return documentOf(new Reader(Uint8Array.from(atob(content.bson), (character) => character.charCodeAt(0))), false);
  }
  return content.json === undefined ? undefined : fromExtended(content.json);
}

const WRAPPERS = {
  $numberLong: (text) => integer(text, "int64"),
  $numberInt: (text) => integer(text, "int32"),
  $numberDouble: (text) => double(Number(text)),
  $numberDecimal: (text) => new Typed("decimal", text),
  $date: (body) => (typeof body === "string" ? date(Date.parse(body)) : date(BigInt(body.$numberLong))),
  $oid: (text) => new Typed("objectId", text),
  $binary: ({ base64, subType }) => binary(base64, subType.padStart(2, "0"), atob(base64).length),
  $regularExpression: ({ pattern, options }) => new Typed("regex", `/${pattern}/${options}`),
  $timestamp: ({ t, i }) => new Typed("timestamp", `${t}, ${i}`),
  $minKey: () => new Typed("minKey", ""),
  $maxKey: () => new Typed("maxKey", ""),
};

/** Extended JSON, in which the server writes the values of changes. */
export function fromExtended(json) {
  if (typeof json === "number") return Number.isInteger(json) && !Object.is(json, -0) ? integer(String(json)) : double(json);
  if (json === null || typeof json !== "object") return json;
  if (Array.isArray(json)) return json.map(fromExtended);
  const names = Object.keys(json);
  if (names.length === 1 && Object.hasOwn(WRAPPERS, names[0])) return WRAPPERS[names[0]](json[names[0]]);
  return new Map(names.map((name) => [name, fromExtended(json[name])]));
}

function extendedTyped({ type, text, note }) {
  switch (type) {
    case "int": {
      const small = text.length < 16 && Number.isSafeInteger(Number(text));
      return small ? text : JSON.stringify({ $numberLong: text });
    }
    case "double":
      return Number.isInteger(Number(text)) ? JSON.stringify({ $numberDouble: text }) : text;
    case "decimal":
      return JSON.stringify({ $numberDecimal: text });
    case "date":
      return JSON.stringify({ $date: text.endsWith(" ms") ? { $numberLong: text.slice(0, -3) } : text });
    case "objectId":
      return JSON.stringify({ $oid: text });
    case "binary":
      return JSON.stringify({ $binary: { base64: text, subType: /subtype (..)/.exec(note)[1] } });
    case "regex": {
      const end = text.lastIndexOf("/");
      return JSON.stringify({ $regularExpression: { pattern: text.slice(1, end), options: text.slice(end + 1) } });
    }
    case "timestamp": {
      const [t, i] = text.split(", ").map(Number);
      return JSON.stringify({ $timestamp: { t, i } });
    }
    default:
      return JSON.stringify({ [`$${type}`]: 1 });
  }
}

/** Extended JSON as text: what `strata create` and the clients take. With `indent`, over several lines. */
export function extendedText(value, indent = "", at = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (value instanceof Typed) return extendedTyped(value);
  const inner = at + indent;
  const list = Array.isArray(value);
  const items = list
    ? value.map((each) => extendedText(each, indent, inner))
    : Array.from(value, ([name, each]) => `${JSON.stringify(name)}: ${extendedText(each, indent, inner)}`);
  const [open, close] = list ? "[]" : "{}";
  if (items.length === 0) return open + close;
  return indent ? `${open}\n${inner}${items.join(`,\n${inner}`)}\n${at}${close}` : `${open}${items.join(", ")}${close}`;
}

/** Equal values have equal keys, as the server compares contents: neither the order of members nor the width of integers counts. */
export function keyOf(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (value instanceof Typed) return `<${value.type} ${JSON.stringify(value.text)} ${value.type === "binary" ? value.note : ""}>`;
  if (Array.isArray(value)) return `[${value.map(keyOf).join(",")}]`;
  return `{${Array.from(value, ([name, each]) => `${JSON.stringify(name)}:${keyOf(each)}`)
    .sort()
    .join(",")}}`;
}
