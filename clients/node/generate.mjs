#!/usr/bin/env node
// A protoc plugin: writes reasons.ts (one error class for each value of error_reason.proto) and types.ts (what the messages look
// like as plain values, with the comments of the protos).
import { ScalarType } from "@bufbuild/protobuf";
import { createEcmaScriptPlugin, getComments, runNodeJs } from "@bufbuild/protoplugin";

const pascal = (name) => name.toLowerCase().replace(/(^|_)(.)/g, (_, __, letter) => letter.toUpperCase());

function comment(f, desc, indent = "") {
  const text = (getComments(desc).leading ?? "").trim().replace(/\*\//g, "* /");
  if (text === "") return;
  f.print(indent, "/**");
  for (const line of text.split("\n")) f.print(indent, " * ", line.trim());
  f.print(indent, " */");
}

function reasons(schema, enumeration) {
  const f = schema.generateFile("reasons.ts");
  f.print("// Made from error_reason.proto: one class for each reason.");
  f.print('import { StrataError } from "../errors.js";');
  f.print();
  const names = [];
  for (const value of enumeration.values) {
    const reason = value.name.replace(/^ERROR_REASON_/, "");
    if (reason === "UNSPECIFIED") continue;
    names.push(reason);
    comment(f, value);
    f.print("export class ", pascal(reason), " extends StrataError {}");
  }
  f.print();
  f.print("export const classes = {");
  for (const reason of names) f.print("  ", reason, ": ", pascal(reason), ",");
  f.print("};");
  f.print("/** The reasons that this client knows. */");
  f.print("export type Reason = keyof typeof classes;");
}

// The messages that hold a content, themselves or in a part: their types have the content's type as parameter.
function withContent(messages) {
  const found = new Set(["strata.v1.Content"]);
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const message of messages) {
      if (message.fields.some((field) => field.message && found.has(field.message.typeName))) found.add(message.typeName);
    }
  }
  return found;
}

function types(schema, messages, enums) {
  const f = schema.generateFile("types.ts");
  f.print("// Made from the protos: what their messages look like as plain values.");
  f.print('import type { Plain } from "../content.js";');
  f.print('import type { Time } from "../time.js";');
  f.print();
  for (const e of enums) {
    comment(f, e);
    const values = e.values.map((value) => value.name.slice(e.sharedPrefix.length).toUpperCase());
    f.print("export type ", e.name, " = ", values.map((value) => `"${value}"`).join(" | "), ";");
  }
  const generic = withContent(messages);
  const nameOf = (message) => message.typeName.slice("strata.v1.".length).replaceAll(".", "");
  const typeOf = (message, init) => {
    switch (message.typeName) {
      case "google.protobuf.Timestamp":
        return init ? "Date" : "Time";
      case "google.protobuf.Duration":
        return "number";
      case "google.protobuf.FieldMask":
        return "string[]";
      case "google.protobuf.Struct":
        return init ? "object" : "{ [name: string]: Plain }";
      case "google.protobuf.Value":
        return "Plain";
      case "google.protobuf.ListValue":
        return "Plain[]";
      case "strata.v1.Content":
        return "T";
      default:
        return nameOf(message) + (init ? "Init" : "") + (generic.has(message.typeName) ? "<T>" : "");
    }
  };
  const scalar = (type, init) => {
    switch (type) {
      case ScalarType.STRING:
        return "string";
      case ScalarType.BOOL:
        return "boolean";
      case ScalarType.BYTES:
        return "Uint8Array";
      case ScalarType.INT64:
        return init ? "bigint | number" : "bigint";
      default:
        return "number";
    }
  };
  const fieldType = (field, init) => {
    const one = (kind) =>
      kind === "message" ? typeOf(field.message, init) : kind === "enum" ? field.enum.name : scalar(field.scalar, init);
    if (field.fieldKind === "list") return init ? `readonly (${one(field.listKind)})[]` : `${one(field.listKind)}[]`;
    if (field.fieldKind === "map") return "{ [name: string]: string }";
    return one(field.fieldKind);
  };
  for (const message of messages) {
    if (message.typeName === "strata.v1.Content") continue;
    for (const init of [false, true]) {
      if (!init && (message.name.endsWith("Request") || message.name === "Write")) continue;
      if (init && message.name.endsWith("Response")) continue;
      comment(f, message);
      const parameter = generic.has(message.typeName) ? "<T = Plain>" : "";
      f.print("export interface ", nameOf(message), init ? "Init" : "", parameter, " {");
      for (const field of message.fields) {
        comment(f, field, "  ");
        const maybe = init || field.oneof || field.fieldKind === "message" || field.presence === 1;
        f.print("  ", field.localName, maybe ? "?" : "", ": ", fieldType(field, init), maybe ? " | undefined" : "", ";");
      }
      f.print("}");
    }
  }
}

runNodeJs(
  createEcmaScriptPlugin({
    name: "protoc-gen-strata",
    version: "v1",
    generateTs(schema) {
      const messages = [];
      const enums = [];
      const add = (message) => {
        messages.push(message);
        message.nestedMessages.forEach(add);
      };
      for (const file of schema.files) {
        file.messages.forEach(add);
        for (const e of file.enums) {
          if (e.name === "ErrorReason") reasons(schema, e);
          else enums.push(e);
        }
      }
      types(schema, messages, enums);
    },
  }),
);
