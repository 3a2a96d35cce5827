// What views are made of: lists in pages, forms whose fields are the URL's, facts, and links to the things that the server names.
import { announce, h, replace, said } from "./dom.js";
import { count, kindWord, parseTime, plural } from "./format.js";
import { problem } from "./problem.js";
import { link, urlOf } from "./router.js";

/** "created", "updated", ... with a sign. */
export function kindTag(kind) {
  const words = kindWord(kind);
  const sign = { created: "+", updated: "~", deleted: "×", restored: "↺" }[words] ?? "";
  return h("span", { class: `kind kind-${words}` }, h("span", { "aria-hidden": "true" }, sign), words);
}

export const none = (text = "–") => h("span", { class: "none" }, text);

export function documentLink(collection, id, query, attributes = {}) {
  return h(
    "a",
    { href: link.document(collection, id, query), class: "document-link", ...attributes },
    h("bdi", { class: "collection-part" }, collection),
    h("span", { class: "slash" }, "/"),
    h("bdi", { class: "id-part" }, id),
  );
}

export const collectionLink = (name, query) => h("a", { href: link.collection(name, query) }, said(name));
export const transactionLink = (id) => h("a", { href: link.transaction(id) }, said(id));

/** Who made a change: the actor, and for whom. */
export function whoTag(change) {
  if (!change?.actor && !change?.onBehalfOf) return none("no actor");
  return h(
    "span",
    {},
    change.actor ? h("a", { href: link.audit({ actor: change.actor }), class: "who" }, said(change.actor)) : none("no actor"),
    change.onBehalfOf && [h("span", { class: "mute" }, " for "), said(change.onBehalfOf)],
  );
}

export function labelTags(labels) {
  const entries = Object.entries(labels ?? {});
  if (entries.length === 0) return null;
  return h(
    "ul",
    { class: "labels", "aria-label": "Labels" },
    entries.map(([name, value]) =>
      h("li", {}, h("bdi", { class: "mute" }, name), h("span", { class: "mute" }, "="), said(value)),
    ),
  );
}

/** Names and values, side by side. Entries that are null are left out. */
export function facts(entries, className = "") {
  return h(
    "dl",
    { class: `facts ${className}` },
    entries.filter((entry) => entry).map(([name, ...value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

export function heading(title, { above, actions } = {}) {
  return h(
    "div",
    { class: "heading" },
    h("div", {}, above && h("p", { class: "above" }, above), h("h1", { tabindex: "-1" }, title)),
    actions && h("p", { class: "actions" }, actions),
  );
}

/** A table: `columns` are [name, class]. Its rows become cards where there is no room. */
export function table(columns, { caption } = {}) {
  const body = h("tbody", { role: "rowgroup" });
  const element = h(
    "table",
    { role: "table", class: "rows" },
    caption && h("caption", { class: "hidden" }, caption),
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        columns.map(([name, className]) => h("th", { role: "columnheader", scope: "col", class: className }, name)),
      ),
    ),
    body,
  );
  return {
    element,
    body,
    row: (...cells) =>
      h(
        "tr",
        { role: "row" },
        cells.map((cell, index) => {
          const [name, className] = columns[index];
          return h("td", { role: "cell", class: className, "data-label": name }, h("div", { class: "cell" }, cell));
        }),
      ),
  };
}

const PAGES_AT_ONCE = 5;
const ROWS_AT_ONCE = 100;

/**
 * A list that is read in pages. `load(pageToken, size)` promises {items, nextPageToken, examined}; `add(items)` shows them. `container`
 * is shown once there are any. Answers an element, and `done`: a promise of the first page's end.
 */
export function paged(context, { container, load, add, noun, nouns, empty, sizes = [100], onLoaded }) {
  const status = h("p", { class: "list-status" });
  const end = h("div", { class: "more" });
  const element = h("div", { class: "paged", "aria-busy": "true" }, container, status, end);
  container.hidden = true;
  let total = 0;
  let examined = 0;
  const words = () => `${plural(total, noun, nouns)}${examined > total ? `, of ${count(examined)} looked at` : ""}`;

  // Filters may examine much to find little: then several pages are one.
  const scarce = (items, size) => items.length < size / 10;
  const next = async (pageToken, size, focus) => {
    element.setAttribute("aria-busy", "true");
    replace(end);
    status.textContent = total === 0 ? "Loading …" : `${words()}. Loading more …`;
    let page;
    try {
      page = await load(pageToken, size);
      for (let pages = 1; page.nextPageToken && scarce(page.items, size) && pages < PAGES_AT_ONCE; pages++) {
        status.textContent = `${plural(total + page.items.length, noun, nouns)}. Looking further …`;
        const further = await load(page.nextPageToken, size);
        page = {
          ...further,
          items: [...page.items, ...further.items],
          examined: Number(page.examined ?? 0) + Number(further.examined ?? 0),
        };
      }
    } catch (error) {
      if (error?.name === "AbortError") return;
      element.setAttribute("aria-busy", "false");
      status.textContent = total === 0 ? "" : `${words()} so far.`;
      replace(
        end,
        problem(error, {
          compact: total > 0,
          signal: context.signal,
          retry: () => next(error.reason === "INVALID_PAGE_TOKEN" ? undefined : pageToken, size, focus),
        }),
      );
      return;
    }
    const body = container.querySelector("tbody") ?? container;
    const lastBefore = body.lastElementChild;
    examined += Number(page.examined ?? 0);
    total += page.items.length;
    for (let at = 0; at < page.items.length; at += ROWS_AT_ONCE) {
      // A page of a thousand is shown in portions, so that keys are answered in between.
      if (at > 0) await new Promise((resolve) => setTimeout(resolve));
      add(page.items.slice(at, at + ROWS_AT_ONCE));
      container.hidden = false;
    }
    element.setAttribute("aria-busy", "false");
    if (total === 0 && !page.nextPageToken) {
      replace(status, typeof empty === "function" ? empty() : empty);
      announce(status.textContent);
    } else {
      status.textContent = page.nextPageToken ? `${words()} so far.` : `${words()}.`;
      announce(status.textContent);
    }
    if (page.nextPageToken) {
      const button = (count_, first) =>
        h(
          "button",
          {
            type: "button",
            class: first ? "more-button" : "more-button quiet",
            onclick: () => next(page.nextPageToken, count_, true),
          },
          total === 0 ? "Look further" : sizes.length > 1 ? `${count(count_)} more` : "More",
        );
      replace(
        end,
        (total === 0 ? sizes.slice(-1) : sizes).map((each, index) => button(each, index === 0)),
      );
    }
    // The button that had the focus is gone: what it brought has it now.
    if (focus) {
      const row = lastBefore ? lastBefore.nextElementSibling : body.firstElementChild;
      const target = row?.querySelector("[data-row]") ?? row?.querySelector("a[href]") ?? end.querySelector("button");
      target?.focus({ preventScroll: true });
    }
    onLoaded?.({ total, more: Boolean(page.nextPageToken) });
  };
  const done = next(undefined, sizes[0], false);
  return { element, done };
}

/** A table in pages. `row(item)` answers its cells, or an array of rows of cells. */
export function pagedTable(context, { columns, caption, cells, ...rest }) {
  const { element, body, row } = table(columns, { caption });
  const list = paged(context, {
    container: element,
    add: (items) => body.append(...items.map((item) => row(...cells(item)))),
    ...rest,
  });
  return { ...list, body };
}

/**
 * A form whose fields are members of the URL's query. `fields`: {name, label, type: text, time, json, select, check, kinds or number,
 * required, options, placeholder, hint, wide}. Submitting goes to the URL with what is filled in; what is wrong is said beside its field.
 */
export function queryForm(context, { label, fields, submit = "Show", path = context.path, keep = [] }) {
  const inputs = fields.map((field) => input(context, field));
  const form = h(
    "form",
    {
      class: "query",
      role: "search",
      "aria-label": label,
      onsubmit(event) {
        event.preventDefault();
        const query = Object.fromEntries(keep.map((name) => [name, context.query.get(name)]));
        let wrong = null;
        for (const { field, control, error } of inputs) {
          const [value, message] = read(field, control);
          error.textContent = message ?? "";
          control.setAttribute("aria-invalid", message ? "true" : "false");
          if (message) wrong ??= control;
          query[field.name] = value;
        }
        if (wrong) wrong.focus();
        else context.go(urlOf(typeof path === "function" ? path(query) : path, query));
      },
    },
    inputs.map((each) => each.element),
    h("div", { class: "field submit" }, h("button", { type: "submit", id: `submit-${fields[0].id ?? fields[0].name}` }, submit)),
  );
  return form;
}

function input(context, field) {
  const id = field.id ?? `field-${field.name}`;
  const value = field.value ?? context.query.get(field.name) ?? "";
  const error = h("span", { class: "field-error", id: `${id}-error`, role: "alert" });
  const hint = field.hint && h("span", { class: "hint", id: `${id}-hint` }, field.hint);
  const described = `${field.hint ? `${id}-hint ` : ""}${id}-error`;
  let control;
  if (field.type === "select") {
    control = h(
      "select",
      { id, "aria-describedby": described },
      field.options.map(([name, words]) => h("option", { value: name, selected: name === value }, words)),
    );
  } else if (field.type === "check") {
    control = h("input", { id, type: "checkbox", checked: value !== "", "aria-describedby": described });
  } else {
    control = h("input", {
      id,
      type: "text",
      value,
      placeholder: field.placeholder ?? (field.type === "time" ? "2 h ago, 2026-01-31" : null),
      autocomplete: "off",
      spellcheck: "false",
      autocapitalize: "off",
      inputmode: field.type === "number" ? "numeric" : null,
      "aria-describedby": described,
      "aria-required": field.required ? "true" : null,
      list: field.suggestions ? `${id}-list` : null,
    });
  }
  const suggestions =
    field.suggestions &&
    h(
      "datalist",
      { id: `${id}-list` },
      field.suggestions.map((each) => h("option", { value: each })),
    );
  if (field.type === "kinds") {
    const chosen = value.split(",");
    control = h(
      "fieldset",
      { class: "field boxes" },
      h("legend", {}, field.label),
      KINDS.map(([, kind]) =>
        h(
          "label",
          { class: "box" },
          h("input", { type: "checkbox", id: `${id}-${kind}`, value: kind, checked: chosen.includes(kind) }),
          ` ${kind}`,
        ),
      ),
    );
    return { field, control, error, element: control };
  }
  const words = h("label", { for: id }, field.label);
  const element = h(
    "div",
    { class: `field field-${field.type ?? "text"} ${field.wide ? "wide" : ""}` },
    field.type === "check" ? [control, words] : [words, control],
    suggestions,
    hint,
    error,
  );
  return { field, control, error, element };
}

function read(field, control) {
  if (field.type === "check") return [control.checked ? "1" : ""];
  if (field.type === "kinds") return [Array.from(control.querySelectorAll(":checked"), (box) => box.value).join(",")];
  const text = control.value.trim();
  if (text === "") return field.required ? ["", `${field.label} is needed.`] : [""];
  switch (field.type) {
    case "time": {
      const time = parseTime(text);
      return time === null ? ["", "No time. Write 2026-01-31 12:00 (here), 2026-01-31T12:00:00Z, or 2 h ago."] : [time];
    }
    case "json":
      try {
        const value = JSON.parse(text);
        return value !== null && typeof value === "object" && !Array.isArray(value)
          ? [text]
          : ["", 'A filter is an object: {"stock": {"$gt": 0}}.'];
      } catch (error) {
        return ["", `No JSON: ${error.message}`];
      }
    case "number":
      return /^\d{1,18}$/.test(text) ? [text] : ["", "A whole number, from 0."];
    default:
      // What stands around a name may be part of it: only what is empty counts as nothing.
      return [control.value];
  }
}

export const KINDS = [
  ["VERSION_KIND_CREATED", "created"],
  ["VERSION_KIND_UPDATED", "updated"],
  ["VERSION_KIND_DELETED", "deleted"],
  ["VERSION_KIND_RESTORED", "restored"],
];

/** The enumerators of the kinds in a query's "created,deleted". */
export const kindsOf = (text) => KINDS.filter(([, words]) => (text ?? "").split(",").includes(words)).map(([name]) => name);

/** A part that loads by itself: says that it does, shows what `make` promises, or why that failed. */
export function section(context, make, { words = "Loading …" } = {}) {
  const element = h("div", { class: "section", "aria-busy": "true" });
  const load = async () => {
    element.setAttribute("aria-busy", "true");
    replace(element, h("p", { class: "list-status" }, words));
    try {
      replace(element, await make());
    } catch (error) {
      if (error?.name === "AbortError") return;
      replace(element, problem(error, { retry: load, signal: context.signal }));
    }
    element.setAttribute("aria-busy", "false");
  };
  return { element, done: load() };
}

/** Does `work` for each item, a few at a time; one that fails leaves the others alone. */
export async function each(items, work, width = 4) {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: Math.min(width, queue.length) }, async () => {
      while (queue.length > 0) await work(queue.shift());
    }),
  );
}

/** A cell that `lateCell` fills in later. */
export const laterCell = () => h("span", { "aria-busy": "true" }, "…");

/** Fills a cell in: `–` with the reason on pointing at it where that failed. */
export function lateCell(fill, cell, error) {
  if (error?.name === "AbortError") return;
  cell.setAttribute("aria-busy", "false");
  replace(
    cell,
    error
      ? h("span", { class: "none", title: error.message }, error.code === "permission_denied" ? "not permitted" : "–")
      : fill(),
  );
}
