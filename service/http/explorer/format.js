// Words for times, counts and sizes. Times come as RFC 3339 in UTC with up to nine digits; a Date has three, so exact ones are kept as
// text.
import { h } from "./dom.js";

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

/** "2026-01-31 13:00:00.123456", in the reader's zone. */
export function localText(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? "";
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(
    date.getSeconds(),
  )}${fraction ? `.${fraction}` : ""}`;
}

/** "2026-01-31 12:00:00.123456 UTC". */
export const utcText = (time) => `${time.replace("T", " ").replace(/Z$/, "")} UTC`;

const STEPS = [
  [60, "s", 1],
  [3600, "min", 60],
  [86_400, "h", 3600],
  [30 * 86_400, "day", 86_400],
  [365 * 86_400, "month", 30 * 86_400],
  [Infinity, "year", 365 * 86_400],
];

/** "3 min ago", "in 2 days". */
export function relativeText(time, now = Date.now()) {
  const seconds = (now - new Date(time).getTime()) / 1000;
  const size = Math.abs(seconds);
  if (Number.isNaN(size)) return time;
  if (size < 1) return "now";
  const [, unit, length] = STEPS.find(([below]) => size < below);
  const count = Math.floor(size / length);
  const words = `${count} ${unit}${unit.length > 3 || unit === "day" ? (count === 1 ? "" : "s") : ""}`;
  return seconds >= 0 ? `${words} ago` : `in ${words}`;
}

/** A time relative to now, which goes on by itself, with the exact one beside it and both zones on pointing at it. */
export function timeTag(time, { exact = true } = {}) {
  if (!time) return h("span", { class: "none" }, "–");
  return h(
    "time",
    { datetime: time, title: `${localText(time)} here\n${utcText(time)}` },
    h("span", { class: "relative", "data-relative": time }, relativeText(time)),
    exact && " ",
    exact && h("span", { class: "exact" }, localText(time).replace(/\.\d+$/, "")),
  );
}

/** Both zones to the microsecond, and how long ago. */
export function fullTime(time) {
  if (!time) return h("span", { class: "none" }, "–");
  const [local, utc] = [localText(time), utcText(time)];
  // In the zone of UTC both are the same; on the same day the day is said once.
  const other = `${local} UTC` === utc ? null : utc.slice(0, 10) === local.slice(0, 10) ? utc.slice(11) : utc;
  return h(
    "time",
    { datetime: time, class: "full-time" },
    h("span", { class: "relative", "data-relative": time }, relativeText(time)),
    " ",
    h("span", { class: "exact" }, other === null ? utc : local),
    other && [" ", h("span", { class: "exact utc" }, other)],
  );
}

export function refreshTimes(root) {
  const now = Date.now();
  for (const element of root.querySelectorAll("[data-relative]")) {
    const text = relativeText(element.dataset.relative, now);
    if (element.textContent !== text) element.textContent = text;
  }
}

const UNITS = { s: 1, sec: 1, m: 60, min: 60, h: 3600, d: 86_400, day: 86_400, days: 86_400 };

/**
 * The time that somebody typed, as RFC 3339 in UTC: "2026-01-31T12:00:00Z", "2026-01-31 12:00" (here), "2026-01-31", "2 h ago". Empty for
 * nothing, null for what is no time.
 */
export function parseTime(text) {
  const words = text.trim();
  if (words === "") return "";
  const ago = /^-?(\d+(?:\.\d+)?)\s*([a-z]+)(?:\s+ago)?$/.exec(words);
  if (ago && UNITS[ago[2]]) return new Date(Date.now() - Number(ago[1]) * UNITS[ago[2]] * 1000).toISOString();
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(\.\d{1,9})?)?)?\s*(Z|UTC|[+-]\d\d:\d\d)?$/i.exec(words);
  if (!parts) return null;
  const [, day, minute = "00:00", second = "00", fraction = "", zone = ""] = parts;
  const date = new Date(`${day}T${minute}:${second}${zone.toUpperCase() === "UTC" ? "Z" : zone.toUpperCase()}`);
  if (Number.isNaN(date.getTime())) return null;
  return date.toISOString().replace(/\.\d+Z$/, `${fraction}Z`);
}

/** A time plus some microseconds. Its text keeps what a Date would drop. */
export function addMicroseconds(time, count) {
  const [, head, fraction = ""] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(time) ?? [null, time.replace(/Z$/, "")];
  const micros = BigInt(Date.parse(`${head}Z`)) * 1000n + BigInt(fraction.padEnd(6, "0").slice(0, 6)) + BigInt(count);
  return `${new Date(Number(micros / 1_000_000n) * 1000).toISOString().slice(0, 19)}.${pad(micros % 1_000_000n, 6)}Z`;
}

/** A 64-bit number, which protobuf's JSON writes as text, grouped: "12,345". */
export const count = (number) => String(number ?? 0).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** A commit position: a name to be copied, and not a number to be read. */
export const position = (number) => String(number ?? 0);

export const plural = (number, noun, many = `${noun}s`) => `${count(number)} ${String(number) === "1" ? noun : many}`;

export function bytes(number) {
  let size = Number(number ?? 0);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} TiB`;
}

/** "1.5s" of protobuf's JSON as "1.5 s", longer ones in minutes and more. */
export function duration(text) {
  if (text === undefined || text === null) return "–";
  const seconds = Number.parseFloat(text);
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${Number((seconds * 1000).toFixed(3))} ms`;
  if (seconds < 120) return `${Number(seconds.toFixed(seconds < 10 ? 3 : 1))} s`;
  for (const [length, unit] of [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
  ]) {
    if (seconds >= length) return `${Number((seconds / length).toFixed(1))} ${unit}`;
  }
  return `${seconds} s`;
}

/** base64 of protobuf's JSON as hexadecimal digits. */
export function hex(base64) {
  if (!base64) return "";
  return Array.from(atob(base64), (character) => pad(character.charCodeAt(0).toString(16))).join("");
}

/** "VERSION_KIND_CREATED" -> "created". */
export const word = (name, prefix) => (name ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
export const kindWord = (kind) => word(kind, "VERSION_KIND_");
