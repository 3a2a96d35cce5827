// Shows contents: lines of members with their values, cut where they are long, and short previews of what changed.
import { Typed, extendedText, fromExtended } from "./bson.js";
import { linesOf } from "./diff.js";
import { count, plural } from "./format.js";
import { announce, h, hidden, replace } from "./dom.js";

const TEXT_SHOWN = 1000;
const LINES_AT_ONCE = 400;

const PLAIN_NAME = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u;
const nameText = (name) => (typeof name === "number" ? String(name) : PLAIN_NAME.test(name) ? name : JSON.stringify(name));

// Characters that turn the direction of text, or have no width, are written out: what looks equal has to be equal.
const UNSEEN = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u007f-\u009f]/g;
const shown = (text) =>
  JSON.stringify(text).replace(UNSEEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);

function textAndType(value) {
  if (value === null) return ["null", "null", ""];
  if (typeof value === "boolean") return [String(value), "boolean", ""];
  if (typeof value === "string") return [shown(value), "string", ""];
  if (Array.isArray(value)) return ["[ ]", "empty", ""];
  if (value instanceof Map) return ["{ }", "empty", ""];
  const { type, text, note } = value;
  if (type === "int" || type === "double") return [text, "number", note];
  if (type === "minKey" || type === "maxKey") return [type, type, ""];
  return [text, type, note];
}

const TYPE_NAMES = {
  decimal: "decimal",
  date: "date",
  objectId: "ObjectId",
  binary: "binary",
  regex: "regex",
  timestamp: "timestamp",
};

/** A value that fits a line. */
export function valueText(value) {
  const [text, type, note] = textAndType(value);
  const element = h("span", { class: `value value-${type}`, title: note || null });
  if (text.length <= TEXT_SHOWN) {
    element.append(text);
  } else {
    const more = h(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => {
          replace(body, text);
          more.remove();
        },
      },
      `all ${count(text.length)} characters`,
    );
    const body = h("span", {}, text.slice(0, TEXT_SHOWN), "…");
    element.append(body, " ", more);
  }
  if (TYPE_NAMES[type]) element.append(" ", h("small", { class: "type" }, TYPE_NAMES[type], type === "binary" && `, ${note}`));
  return element;
}

/** The inside of a line of `linesOf`. */
export function lineContent(line) {
  if (line === null) return [];
  const parts = [];
  if (line.name !== null) {
    parts.push(
      h("span", { class: typeof line.name === "number" ? "index" : "name" }, nameText(line.name)),
      h("span", { class: "mute" }, ": "),
    );
  }
  if (line.open) parts.push(h("span", { class: "mute" }, line.open));
  else if (line.close) parts.push(h("span", { class: "mute" }, line.close));
  else parts.push(valueText(line.value));
  return parts;
}

/** Appends `items` by `render` to `container`, so many at once; `more` is where the button for the rest goes. */
export function inPortions(container, more, items, render, noun, portion = LINES_AT_ONCE) {
  let shownSoFar = 0;
  const next = (size) => {
    const end = Math.min(items.length, shownSoFar + size);
    const fragment = document.createDocumentFragment();
    for (; shownSoFar < end; shownSoFar++) fragment.append(render(items[shownSoFar], shownSoFar));
    container.append(fragment);
    replace(
      more,
      shownSoFar < items.length &&
        h(
          "button",
          { type: "button", onclick: () => next(portion * 4) },
          `More (${plural(items.length - shownSoFar, noun)} below)`,
        ),
    );
    if (end > portion) announce(`${plural(shownSoFar, noun)} of ${count(items.length)} shown`);
  };
  next(portion);
}

/** A whole content, with a button that copies it as Extended JSON. */
export function contentView(value) {
  if (value === undefined) return h("p", { class: "none" }, "No content: this version is a deletion.");
  // The outermost braces say nothing.
  const lines = value instanceof Map && value.size > 0 ? linesOf(value).slice(1, -1) : linesOf(value);
  const shift = value instanceof Map && value.size > 0 ? 1 : 0;
  const list = h("div", { class: "content", tabindex: "0", role: "group", "aria-label": "Content" });
  const more = h("div", {});
  inPortions(
    list,
    more,
    lines,
    (line) => h("div", { class: `line depth-${Math.min(24, line.depth - shift)}` }, lineContent(line)),
    "line",
  );
  return h("div", {}, list, more);
}

export function copyButton(value) {
  return h(
    "button",
    {
      type: "button",
      class: "quiet",
      async onclick(event) {
        const button = event.currentTarget;
        try {
          await navigator.clipboard.writeText(extendedText(value, "  "));
          button.textContent = "Copied";
        } catch {
          button.textContent = "The browser does not allow it";
        }
        announce(button.textContent);
      },
    },
    "Copy as JSON",
  );
}

/** A value in few characters, for tables. */
export function preview(value, length = 60) {
  const text = typeof value === "string" ? shown(value) : brief(value, length);
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function brief(value, room) {
  if (value === null || typeof value !== "object" || value instanceof Typed) return textAndType(value)[0];
  const parts = [];
  let used = 2;
  for (const [name, each] of Array.isArray(value) ? value.entries() : value) {
    const part = Array.isArray(value) ? brief(each, room - used) : `${nameText(name)}: ${brief(each, room - used)}`;
    parts.push(part);
    used += part.length + 2;
    if (used > room) {
      parts.push("…");
      break;
    }
  }
  return Array.isArray(value) ? `[${parts.join(", ")}]` : `{${parts.join(", ")}}`;
}

/** Member by member, as in a table: `title: "Moby Dick", stock: 3`. */
export const contentPreview = (value, length) =>
  value instanceof Map ? preview(value, length + 2).replace(/^\{|\}$/g, "") : preview(value, length);

const MARKS = { CHANGE_TYPE_ADDED: ["added", "+"], CHANGE_TYPE_REMOVED: ["removed", "−"], CHANGE_TYPE_CHANGED: ["changed", "~"] };

export const markOf = (mark) => [{ added: "+", removed: "−", changed: "~" }[mark] ?? "", mark];

/** One FieldChange on a line. */
export function changeLine(change) {
  const [mark, sign] = MARKS[change.type] ?? ["changed", "~"];
  const before = change.before === undefined ? null : preview(fromExtended(change.before));
  const after = change.after === undefined ? null : preview(fromExtended(change.after));
  return h(
    "li",
    { class: `change ${mark}` },
    h("span", { class: "sign", "aria-hidden": "true" }, sign),
    hidden(`${mark}: `),
    h("span", { class: "path" }, change.path === "" ? "the whole document" : pathText(change.path)),
    change.valuesOmitted
      ? h("span", { class: "mute" }, " values too large to show here")
      : [
          " ",
          before !== null && h(after === null ? "del" : "span", { class: "value before" }, before),
          before !== null && after !== null && [h("span", { class: "mute", "aria-hidden": "true" }, " → "), hidden(" became ")],
          after !== null && h("span", { class: "value" }, after),
        ],
  );
}

// "/address/city" reads better as address/city; names are shown as they are in contents.
function pathText(pointer) {
  return pointer
    .slice(1)
    .split("/")
    .map((part) => {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      return PLAIN_NAME.test(name) || /^\d+$/.test(name) ? name : shown(name);
    })
    .join("/");
}

/** What changed in a version: the first few changes, and how many there are besides. */
export function changeList(version, { most = 4 } = {}) {
  const changes = version.changes ?? [];
  if (version.kind === "VERSION_KIND_DELETED") {
    return h(
      "p",
      { class: "none" },
      changes.length === 0 ? "deleted" : `${version.changesTruncated ? "many" : plural(changes.length, "member")} gone`,
    );
  }
  if (changes.length === 0) return h("p", { class: "none" }, "no member changed");
  const rest = changes.length - most;
  return h(
    "ul",
    { class: "changes" },
    changes.slice(0, rest > 1 ? most : undefined).map(changeLine),
    (rest > 1 || version.changesTruncated) && h("li", { class: "mute" }, `and ${version.changesTruncated ? "many" : rest} more`),
  );
}
