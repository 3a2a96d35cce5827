// One document: its timeline with who, why and what changed, its content as of any version or time, and any two versions side by side.
import { contentOf } from "../bson.js";
import { sideBySide } from "../diff.js";
import { changeLine, changeList, contentView, copyButton, inPortions, lineContent, markOf } from "../value.js";
import { announce, h, hidden, replace, said } from "../dom.js";
import { count, fullTime, hex, localText, plural, relativeText, timeTag, utcText } from "../format.js";
import {
  collectionLink,
  facts,
  heading,
  kindTag,
  labelTags,
  none,
  paged,
  queryForm,
  section,
  transactionLink,
  whoTag,
} from "../parts.js";
import { problem } from "../problem.js";
import { slider } from "../slider.js";
import { link } from "../router.js";

// So many versions at a time are asked for what changed in them, once they come into sight.
const CHANGES_AT_ONCE = 20;
// Rows of what did not change that are left around what did.
const AROUND = 3;

const numberOf = (version) => Number(version?.version ?? 0);

export default {
  fits: (rest) => rest.length === 2,
  title: ({ path, query }) => {
    const [, collection, id] = path;
    const name = `${collection}/${id}`;
    if (query.has("a") && query.has("b")) return `${name}, versions ${query.get("a")} and ${query.get("b")}`;
    return query.has("version") ? `${name}, version ${query.get("version")}` : name;
  },
  render(context, root) {
    const [, collection, id] = context.path;
    const top = heading(said(id), {
      above: [h("a", { href: link.collections() }, "Collections"), " / ", collectionLink(collection)],
      actions: [
        h("a", { href: link.document(collection, id) }, "Timeline"),
        h("a", { href: link.audit({ collection, id }) }, "Audit"),
        h("a", { href: link.verify(collection, { id }) }, "Verify"),
      ],
    });
    // Without the document there is but one thing to say, and it is said once.
    const body = section(context, async () => {
      const answer = await context.call("DocumentService/History", { collection, id, pageSize: 1 });
      const newest = answer.versions[0];
      const place = h("div", {});
      if (context.query.has("a") && context.query.has("b")) compare(context, place, collection, id, numberOf(newest));
      else timeline(context, place, collection, id, newest);
      return place;
    });
    replace(root, top, body.element);
  },
  resume: (context) => context.late?.resume(),
};

// ---- the timeline

function timeline(context, root, collection, id, newest) {
  const { query } = context;
  const filter = query.get("where");
  const oldestFirst = query.get("order") === "oldest";
  const chosen = { a: null, b: null };
  const entries = new Map();

  const compareButton = h(
    "button",
    {
      type: "button",
      class: "strong",
      id: "compare",
      onclick: () => {
        const [a, b] = [chosen.a, chosen.b].sort((x, y) => x - y);
        context.go(link.document(collection, id, { a, b }));
      },
    },
    "Compare",
  );
  const mark = () => {
    const ready = chosen.a !== null && chosen.b !== null && chosen.a !== chosen.b;
    compareButton.disabled = !ready;
    compareButton.textContent = ready
      ? `Compare v${Math.min(chosen.a, chosen.b)} with v${Math.max(chosen.a, chosen.b)}`
      : "Compare two versions";
  };
  const choose = (side, number) => {
    chosen[side] = number;
    mark();
  };
  mark();

  entries.set(numberOf(newest), newest);
  const content = contentPane(context, collection, id, entries, numberOf(newest));
  const list = h("div", { class: "timeline", role: "list", "aria-label": "Versions" });
  const late = new LateChanges(context, collection, id, filter ? JSON.parse(filter) : undefined);
  context.late = late;
  let first = true;
  const versions = paged(context, {
    container: list,
    noun: "version",
    sizes: [100, 1000],
    empty: filter ? "No version matches the filter." : "There is no version in that span.",
    load: async (pageToken, pageSize) => {
      const answer = await context.call("DocumentService/History", {
        collection,
        id,
        pageSize,
        pageToken,
        oldestFirst,
        filter: filter ? JSON.parse(filter) : undefined,
        fromTime: query.get("from") || undefined,
        toTime: query.get("to") || undefined,
      });
      return { items: answer.versions ?? [], nextPageToken: answer.nextPageToken };
    },
    add(items) {
      const rows = items.map((version) => {
        entries.set(numberOf(version), version);
        return entry(collection, id, version, choose, late);
      });
      // The newest two are what most want to compare.
      if (first && items.length > 1) {
        rows[1].querySelector("[name=a]").checked = true;
        rows[0].querySelector("[name=b]").checked = true;
        choose("a", numberOf(items[1]));
        choose("b", numberOf(items[0]));
      }
      first = false;
      // In groups, of which those out of sight are not laid out: so ten thousand versions stay quick.
      list.append(h("div", { class: "timeline-group", role: "presentation" }, rows));
      late.watch(rows);
      content.mark();
    },
  });
  const form = queryForm(context, {
    label: "Which versions",
    keep: ["version", "at"],
    fields: [
      { name: "where", label: "Content matches", type: "json", placeholder: '{"stock": 0}', wide: true },
      { name: "from", label: "From", type: "time", value: query.get("from") && localText(query.get("from")) },
      { name: "to", label: "Until", type: "time", value: query.get("to") && localText(query.get("to")) },
      {
        name: "order",
        label: "Order",
        type: "select",
        options: [
          ["", "newest first"],
          ["oldest", "oldest first"],
        ],
      },
    ],
  });
  replace(
    root,
    h(
      "div",
      { class: "two-panes" },
      content.element,
      h(
        "section",
        { class: "pane timeline-pane", "aria-labelledby": "timeline-heading" },
        h("div", { class: "pane-heading" }, h("h2", { id: "timeline-heading" }, "Timeline"), compareButton),
        h(
          "details",
          { class: "narrow", open: ["where", "from", "to", "order"].some((name) => query.has(name)) },
          h("summary", {}, "Choose versions"),
          form,
        ),
        versions.element,
      ),
    ),
  );
}

function entry(collection, id, version, choose, late) {
  const number = numberOf(version);
  const { change } = version;
  const radio = (side, words) =>
    h(
      "label",
      { class: "choice", title: words },
      h("input", { type: "radio", name: side, id: `${side}-${number}`, value: number, onchange: () => choose(side, number) }),
      h("span", { "aria-hidden": "true" }, side.toUpperCase()),
      hidden(`${words}: version ${number}`),
    );
  const changes = h("div", { class: "entry-changes" }, h("p", { class: "none" }, "…"));
  late.add(number, changes);
  return h(
    "div",
    { role: "listitem", class: `entry entry-${version.kind?.slice(13).toLowerCase()}`, "data-version": number },
    h("div", { class: "entry-choices" }, radio("a", "Compare from"), radio("b", "Compare to")),
    h(
      "div",
      { class: "entry-body" },
      h(
        "p",
        { class: "entry-head" },
        h(
          "a",
          {
            href: link.document(collection, id, { version: number }),
            "data-row": true,
            class: "entry-version",
            id: `version-${number}`,
          },
          `v${number}`,
        ),
        " ",
        kindTag(version.kind),
        " ",
        fullTime(version.commitTime),
      ),
      h(
        "p",
        { class: "entry-why" },
        whoTag(change),
        " ",
        change?.reason ? said(change.reason, "reason") : none("no reason given"),
      ),
      labelTags(change?.labels),
      changes,
      h(
        "p",
        { class: "entry-links" },
        number > 1 &&
          h("a", { href: link.document(collection, id, { a: number - 1, b: number }) }, `Compare with v${number - 1}`),
        version.requestId &&
          h("span", {}, "request ", h("a", { href: link.audit({ request_id: version.requestId }) }, said(version.requestId))),
        version.transactionId && h("span", {}, "transaction ", transactionLink(version.transactionId)),
      ),
    ),
  );
}

// What changed is asked for as versions come into sight, neighbours together: of a long history nobody reads most. One row of each group
// is observed, as the browser looks at each observed one whenever something moves.
class LateChanges {
  constructor(context, collection, id, filter) {
    Object.assign(this, { context, collection, id, filter, places: new Map(), groups: new Map(), wanted: [], asking: false });
    this.observer = new IntersectionObserver(
      (sightings) => {
        for (const { isIntersecting, target } of sightings) {
          if (isIntersecting) {
            this.observer.unobserve(target);
            this.wanted.push(this.groups.get(target));
            this.groups.delete(target);
          }
        }
        this.ask();
      },
      // Half a group, and what one scrolls to next.
      { rootMargin: "1400px" },
    );
  }
  add(number, place) {
    this.places.set(number, place);
  }
  watch(rows) {
    for (let at = 0; at < rows.length; at += CHANGES_AT_ONCE) {
      const group = rows.slice(at, at + CHANGES_AT_ONCE);
      const middle = group[group.length >> 1];
      this.groups.set(
        middle,
        group.map((row) => Number(row.dataset.version)),
      );
      this.observer.observe(middle);
    }
  }
  async ask() {
    if (this.asking) return;
    this.asking = true;
    try {
      // What came into sight last is what somebody looks at.
      while (this.wanted.length > 0) await this.fill(this.wanted.pop());
    } finally {
      this.asking = false;
    }
  }
  async fill(numbers) {
    let pageToken;
    try {
      do {
        const answer = await this.context.call("DocumentService/History", {
          collection: this.collection,
          id: this.id,
          fromVersion: Math.min(...numbers),
          toVersion: Math.max(...numbers),
          filter: this.filter,
          includeChanges: true,
          pageSize: CHANGES_AT_ONCE,
          pageToken,
        });
        for (const version of answer.versions ?? []) this.put(numberOf(version), changeList(version));
        pageToken = answer.nextPageToken;
      } while (pageToken);
    } catch (error) {
      if (error?.name === "AbortError") {
        // The view was left; it may be come back to, and goes on then.
        this.left = [...(this.left ?? []), numbers];
        return;
      }
      for (const number of numbers) {
        const again = h(
          "button",
          { type: "button", class: "quiet", onclick: () => (this.wanted.push(numbers), this.ask()) },
          "Try again",
        );
        this.put(number, h("p", { class: "none" }, `The changes could not be read: ${error.message}. `, again));
      }
    }
  }
  resume() {
    this.wanted.push(...(this.left ?? []));
    this.left = [];
    this.ask();
  }
  put(number, node) {
    const place = this.places.get(number);
    if (place) replace(place, node);
  }
}

// ---- the content as of a version

function contentPane(context, collection, id, entries, newest) {
  const body = h("div", { class: "section", "aria-busy": "true" }, h("p", { class: "list-status" }, "Loading …"));
  const sliderPlace = h("div", {});
  const element = h(
    "section",
    { class: "pane content-pane", "aria-labelledby": "content-heading" },
    h("div", { class: "pane-heading" }, h("h2", { id: "content-heading" }, "Content")),
    sliderPlace,
    body,
  );
  let shown = 0;
  let here = null;
  let control = null;
  let request = null;

  const mark = () => {
    const row = element.parentElement?.querySelector(`[data-version="${shown}"]`);
    if (row === here) return;
    here?.classList.remove("here");
    here?.querySelector(".entry-version").removeAttribute("aria-current");
    row?.classList.add("here");
    row?.querySelector(".entry-version").setAttribute("aria-current", "true");
    here = row;
  };
  const describe = (number) => {
    const version = entries.get(number);
    return [h("strong", {}, `v${number}`), ` of ${count(newest)} `, version && fullTime(version.commitTime)];
  };
  const spoken = (number) => {
    const version = entries.get(number);
    return `version ${number} of ${newest}${version ? `, ${relativeText(version.commitTime)}, ${utcText(version.commitTime)}` : ""}`;
  };

  const show = async (number, { keep = true } = {}) => {
    shown = number;
    request?.abort();
    request = new AbortController();
    const mine = request;
    body.setAttribute("aria-busy", "true");
    try {
      const version = await oneVersion(context, collection, id, number);
      if (mine.signal.aborted) return;
      entries.set(number, { ...version, content: undefined });
      control?.show();
      if (keep) context.replaceQuery({ version: number === newest ? "" : number, at: "" });
      const value = contentOf(version.content);
      replace(body, about(version, value), contentView(value));
    } catch (error) {
      if (error?.name === "AbortError" || mine.signal.aborted) return;
      replace(body, problem(error, { retry: () => show(number), signal: context.signal }));
    }
    body.setAttribute("aria-busy", "false");
    mark();
  };

  const about = (version, value) => [
    h(
      "p",
      { class: "entry-why" },
      kindTag(version.kind),
      " ",
      whoTag(version.change),
      " ",
      version.change?.reason ? said(version.change.reason, "reason") : none("no reason given"),
    ),
    h(
      "p",
      { class: "entry-links" },
      numberOf(version) < newest &&
        h(
          "a",
          { href: link.document(collection, id, { a: numberOf(version), b: newest }) },
          `Compare with the newest, v${newest}`,
        ),
      numberOf(version) > 1 &&
        numberOf(version) - 1 !== newest &&
        h(
          "a",
          { href: link.document(collection, id, { a: numberOf(version) - 1, b: numberOf(version) }) },
          `Compare with v${numberOf(version) - 1}`,
        ),
      value instanceof Map && value.has("student_id") && h("a", { href: link.student(collection, id) }, "Enrollments"),
      value !== undefined && copyButton(value),
    ),
    h(
      "details",
      { class: "hashes" },
      h("summary", {}, "Hashes"),
      facts([
        ["content", h("code", {}, hex(version.contentHash))],
        ["chain", h("code", {}, hex(version.chainHash))],
      ]),
    ),
  ];

  const start = async () => {
    try {
      const { query } = context;
      let wanted = Math.min(newest, Number(query.get("version") ?? 0)) || newest;
      // A version that there is not is the server's to refuse, in its words.
      if (Number(query.get("version") ?? 0) > newest) wanted = Number(query.get("version"));
      if (query.has("at") || query.has("position")) wanted = await versionAt(context, collection, id);
      control = slider({
        id: "as-of",
        label: "As of",
        min: 1,
        max: newest,
        value: wanted,
        describe,
        spoken,
        settle: (number) => show(number),
        step: (by) => {
          const next = Math.max(1, Math.min(newest, shown + by));
          control.set(next);
          show(next);
        },
      });
      replace(
        sliderPlace,
        newest > 1 && control.element,
        newest > 1 &&
          h(
            "details",
            { class: "narrow" },
            h("summary", {}, "As of a time or commit"),
            queryForm(context, {
              label: "As of another time",
              submit: "Go there",
              keep: ["where", "from", "to", "order"],
              fields: [
                { name: "at", label: "Time", type: "time", value: query.get("at") && localText(query.get("at")) },
                { name: "position", label: "or commit", type: "number" },
              ],
            }),
          ),
      );
      const current = await currentOf(context, collection, id, sliderPlace);
      if (current > 0 && !["version", "at", "position"].some((name) => query.has(name))) {
        wanted = current;
        control.set(wanted);
      }
      await show(wanted, { keep: false });
    } catch (error) {
      if (error?.name === "AbortError") return;
      body.setAttribute("aria-busy", "false");
      replace(body, problem(error, { retry: start, signal: context.signal }));
    }
  };
  start();
  return { element, mark };
}

async function versionAt(context, collection, id) {
  const { document } = await context
    .call("DocumentService/Get", {
      collection,
      id,
      atTime: context.query.get("at") || undefined,
      atPosition: context.query.get("position") || undefined,
      fields: ["/-"],
    })
    .catch((error) => {
      // As of that time it was deleted: the deletion is a version as any other.
      if (error.reason === "DOCUMENT_DELETED" && error.metadata.version) return { document: { version: error.metadata.version } };
      throw error;
    });
  return Number(document.version);
}

// What counts at present: while a transaction in two phases is not decided, the version before the one that it wrote. Says so at `place`;
// answers the version, or 0 where it is the newest that there is.
async function currentOf(context, collection, id, place) {
  let document;
  try {
    ({ document } = await context.call("DocumentService/Get", { collection, id, fields: ["/-"] }));
  } catch (error) {
    if (!["DOCUMENT_DELETED", "DOCUMENT_NOT_FOUND"].includes(error.reason)) throw error;
    if (error.reason === "DOCUMENT_NOT_FOUND") {
      place.append(h("p", { class: "tag warn" }, "It is not there yet: the transaction that creates it is not decided."));
    }
    return 0;
  }
  if (!document.pendingTransactionId) return 0;
  const words = `A transaction has written the version after v${document.version} and is not decided: `;
  place.append(h("p", { class: "tag warn" }, words, transactionLink(document.pendingTransactionId)));
  return Number(document.version);
}

// ---- two versions side by side

function compare(context, root, collection, id, newest) {
  const a = context.query.get("a");
  const b = context.query.get("b");
  const body = section(
    context,
    async () => {
      const [left, right] = await Promise.all([a, b].map((number) => oneVersion(context, collection, id, number)));
      return sides(context, collection, id, left, right, newest);
    },
    { words: `Loading versions ${a} and ${b} …` },
  );
  replace(root, body.element);
}

async function oneVersion(context, collection, id, number) {
  const answer = await context.call("DocumentService/History", {
    collection,
    id,
    fromVersion: number,
    toVersion: number,
    includeContent: true,
    encoding: "ENCODING_BSON",
    pageSize: 1,
  });
  const version = answer.versions?.[0];
  if (version) return version;
  // History has nothing to show of a version that there is not; Get refuses it, in the server's words.
  await context.call("DocumentService/Get", { collection, id, version: number });
  throw new Error(`the server has no version ${number}`);
}

function sides(context, collection, id, left, right, newest) {
  const [a, b] = [numberOf(left), numberOf(right)];
  const [before, after] = [contentOf(left.content), contentOf(right.content)];
  const { rows, counts } = sideBySide(before ?? new Map(), after ?? new Map());
  const total = counts.added + counts.removed + counts.changed;
  const words =
    total === 0
      ? (before === undefined) === (after === undefined)
        ? "Nothing differs."
        : "One of them is a deletion; there were no members."
      : `${[
          ["changed", counts.changed],
          ["added", counts.added],
          ["removed", counts.removed],
        ]
          .filter(([, n]) => n > 0)
          .map(([word_, n]) => `${n} ${word_}`)
          .join(", ")}.`;
  announce(words);
  const step = (from, to, text) => h("a", { href: link.document(collection, id, { a: from, b: to }) }, text);
  return [
    h(
      "div",
      { class: "pane-heading" },
      h("h2", {}, `Version ${a} and version ${b}`),
      h(
        "p",
        { class: "actions" },
        Math.min(a, b) > 1 && step(a - 1, b - 1, `‹ v${a - 1} and v${b - 1}`),
        step(b, a, "Swap"),
        Math.max(a, b) < newest && step(a + 1, b + 1, `v${a + 1} and v${b + 1} ›`),
      ),
    ),
    h(
      "p",
      { class: "diff-summary", id: "diff-summary" },
      words,
      " Changed members are marked ",
      h("b", {}, "~"),
      ", added ones ",
      h("b", {}, "+"),
      ", removed ones ",
      h("b", {}, "−"),
      ".",
    ),
    diffTable(rows, left, right, before, after),
    total > 1 &&
      h(
        "details",
        {
          class: "change-list",
          ontoggle: (event) => {
            // Asked for once it is opened.
            if (event.currentTarget.children.length === 1)
              event.currentTarget.append(serverChanges(context, collection, id, a, b));
          },
        },
        h("summary", {}, "The changes as a list"),
      ),
  ];
}

function versionHead(version, deleted) {
  return [
    h("span", { class: "diff-version" }, `v${version.version} `, kindTag(version.kind)),
    h(
      "span",
      { class: "diff-who" },
      whoTag(version.change),
      " ",
      version.change?.reason ? said(version.change.reason, "reason") : none("no reason given"),
    ),
    timeTag(version.commitTime),
    deleted && h("span", { class: "none" }, "no content"),
  ];
}

function diffTable(rows, left, right, before, after) {
  const body = h("tbody", { role: "rowgroup" });
  const more = h("div", { class: "more" });
  const side = (line, name) =>
    h(
      "td",
      { role: "cell", class: `side ${name} depth-${Math.min(24, line?.depth ?? 0)}` },
      h("div", { class: "line" }, lineContent(line)),
    );
  const render = (item) => {
    if (item.folded) {
      return h(
        "tr",
        { role: "row", class: "fold" },
        h(
          "td",
          { role: "cell", colspan: 3 },
          h(
            "button",
            {
              type: "button",
              class: "quiet",
              onclick: (event) => {
                const row = event.currentTarget.closest("tr");
                const fragment = document.createDocumentFragment();
                fragment.append(...item.folded.map(render));
                row.replaceWith(fragment);
              },
            },
            `${plural(item.folded.length, "line")} without a change`,
          ),
        ),
      );
    }
    const [sign, spokenMark] = markOf(item.mark);
    return h(
      "tr",
      { role: "row", class: `row ${item.mark}`, "data-path": item.path },
      h(
        "th",
        { role: "rowheader", scope: "row", class: "sign" },
        h("span", { "aria-hidden": "true" }, sign),
        hidden(item.mark === "same" ? "the same" : spokenMark),
      ),
      side(item.left, "left"),
      side(item.right, "right"),
    );
  };
  inPortions(body, more, folded(rows), render, "row");
  return h(
    "div",
    {},
    h(
      "table",
      { role: "table", class: "diff", "aria-describedby": "diff-summary" },
      h(
        "thead",
        { role: "rowgroup" },
        h(
          "tr",
          { role: "row" },
          h("th", { role: "columnheader", scope: "col" }, hidden("What happened")),
          h("th", { role: "columnheader", scope: "col" }, versionHead(left, before === undefined)),
          h("th", { role: "columnheader", scope: "col" }, versionHead(right, after === undefined)),
        ),
      ),
      body,
    ),
    more,
  );
}

// Long runs of equal rows are folded, but for a few around what differs.
function folded(rows) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, at) => {
    if (row.mark === "same") return;
    near.fill(1, Math.max(0, at - AROUND), at + AROUND + 1);
  });
  const items = [];
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (end < rows.length && !near[end]) end++;
    if (end - at > 4) items.push({ folded: rows.slice(at, end) });
    else items.push(...rows.slice(at, end));
    at = end;
    while (at < rows.length && near[at]) items.push(rows[at++]);
  }
  return items;
}

function serverChanges(context, collection, id, a, b) {
  const list = h("ul", { class: "changes" });
  return paged(context, {
    container: list,
    noun: "change",
    sizes: [200],
    empty: "Nothing differs.",
    add: (items) => list.append(...items.map(changeLine)),
    load: async (pageToken, pageSize) => {
      const answer = await context.call("DocumentService/Diff", {
        collection,
        id,
        fromVersion: a,
        toVersion: b,
        pageSize,
        pageToken,
      });
      return { items: answer.changes ?? [], nextPageToken: answer.nextPageToken };
    },
  }).element;
}
