// The feed, live: each change as it is committed.
import { changeList } from "../value.js";
import { announce, h, hidden, replace, said } from "../dom.js";
import { count, duration, position, timeTag } from "../format.js";
import {
  collectionLink,
  documentLink,
  facts,
  heading,
  kindTag,
  kindsOf,
  none,
  queryForm,
  section,
  table,
  whoTag,
} from "../parts.js";
import { problem } from "../problem.js";
import { link } from "../router.js";
import { whenBack } from "../connection.js";

// Rows that are kept; older ones go, so that the page may stay open for days.
const ROWS_MAX = 500;
// A page that nobody sees takes no connection for longer than this.
const HIDDEN_MS = 60_000;

export default {
  live: true,
  fits: (rest) => rest.length === 0,
  title: () => "Feed",
  render(context, root) {
    const { query } = context;
    const collections = (query.get("collections") ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter((each) => each !== "");
    const form = queryForm(context, {
      label: "Which events",
      submit: "Watch",
      fields: [
        { name: "collections", label: "Collections", placeholder: "books, authors" },
        { name: "prefix", label: "Ids that begin with", hint: "Needs one collection." },
        { name: "where", label: "Filter", type: "json", placeholder: '{"stock": 0}', wide: true },
        { name: "kinds", label: "Kinds", type: "kinds" },
        { name: "after", label: "From after commit", type: "number", placeholder: "now" },
      ],
    });
    const follower = new Follower(
      context,
      {
        collections,
        idPrefix: query.get("prefix") ?? "",
        filter: query.get("where") ? JSON.parse(query.get("where")) : undefined,
        kinds: kindsOf(query.get("kinds")),
        includeChanges: true,
        bookmarkInterval: "2s",
      },
      query.get("after") ?? "",
    );
    replace(
      root,
      heading("Feed", { actions: [h("a", { href: link.subscriptions() }, "Subscriptions")] }),
      about(context),
      form,
      follower.element,
    );
    follower.start();
  },
};

function about(context) {
  return section(context, async () => {
    const feed = await context.call("FeedService/GetFeed", {});
    return facts([
      ["reaches from", `commit ${position(feed.oldestPosition)}`],
      ["to", `commit ${position(feed.lastPosition)}`],
      ["watchers", count(feed.watchers)],
      ["of these wait", count(feed.parkedWatchers)],
      ["events sent", count(feed.eventsSent)],
      ["catch-up reads", count(feed.catchUpReads)],
      ["kept for", feed.retention ? duration(feed.retention) : "ever"],
      ["held by", feed.heldBy ? [said(feed.heldBy), ` from commit ${position(feed.heldPosition)} on`] : "none"],
      ["take-overs", count(feed.takeOvers)],
      ["refused with LEASE_LOST", count(feed.leaseLost)],
    ]);
  }).element;
}

class Follower {
  constructor(context, request, after) {
    const { element, body, row } = table(
      [
        ["Document", "c-document"],
        ["Version", "c-version"],
        ["What changed", "c-changes"],
        ["Who", "c-who"],
        ["Why", "c-why"],
        ["When", "c-when"],
        ["Commit", "c-position"],
      ],
      { caption: "Events, newest first" },
    );
    Object.assign(this, { context, request, after, body, row, table: element, events: 0, running: null, wanted: true });
    this.light = h("span", { class: "light", "aria-hidden": "true" });
    this.words = h("span", {});
    this.button = h(
      "button",
      { type: "button", id: "pause", onclick: () => (this.wanted ? this.pause("Paused.") : this.start()) },
      "Pause",
    );
    this.trouble = h("div", {});
    element.hidden = true;
    this.empty = h("p", { class: "list-status" }, "Nothing yet. New commits appear here.");
    this.element = h(
      "section",
      { "aria-label": "Events" },
      h("p", { class: "live" }, this.button, h("span", { class: "live-state" }, this.light, " ", this.words)),
      this.trouble,
      this.empty,
      element,
    );
    const hide = () => {
      clearTimeout(this.hiding);
      if (document.hidden)
        this.hiding = setTimeout(() => this.running && this.pause("Paused while the page was hidden.", true), HIDDEN_MS);
      else if (this.asleep) this.start();
    };
    document.addEventListener("visibilitychange", hide);
    context.signal.addEventListener(
      "abort",
      () => {
        document.removeEventListener("visibilitychange", hide);
        clearTimeout(this.hiding);
      },
      { once: true },
    );
  }
  show(state, text) {
    this.light.className = `light ${state}`;
    this.words.textContent = text;
    this.button.textContent = this.wanted ? "Pause" : "Go on";
  }
  pause(words, asleep = false) {
    this.wanted = false;
    this.asleep = asleep;
    this.running?.abort(new DOMException("paused", "AbortError"));
    this.show("off", `${words} After commit ${position(this.after || 0)}.`);
    announce(words);
  }
  async start() {
    this.wanted = true;
    this.asleep = false;
    this.running?.abort(new DOMException("anew", "AbortError"));
    const running = new AbortController();
    this.running = running;
    this.context.signal.addEventListener("abort", () => running.abort(this.context.signal.reason), { once: true });
    replace(this.trouble);
    this.show("off", "Connecting …");
    try {
      const start = this.after === "" ? {} : { afterPosition: String(this.after) };
      for await (const message of this.context.stream(
        "FeedService/Watch",
        { ...this.request, ...start },
        { signal: running.signal },
      )) {
        this.take(message);
      }
      // The server ends streams that are old, so that clients find another server.
      if (this.running === running && this.wanted) this.start();
    } catch (error) {
      if (running !== this.running || error?.name === "AbortError") return;
      this.show("off", "Interrupted.");
      if (error.unreachable) whenBack(() => this.wanted && this.start(), this.context.signal);
      else this.wanted = false;
      replace(
        this.trouble,
        problem(error, { compact: true, retry: error.unreachable ? undefined : () => this.start(), signal: this.context.signal }),
      );
      this.show("off", "Interrupted.");
    }
  }
  take({ events = [], resumePosition = "0", lastPosition = "0" }) {
    this.after = resumePosition;
    this.events += events.length;
    if (events.length > 0) {
      this.empty.hidden = true;
      this.table.hidden = false;
      this.body.prepend(...events.map((event) => this.rowOf(event)).reverse());
      while (this.body.children.length > ROWS_MAX) this.body.lastElementChild.remove();
    }
    const lag = BigInt(lastPosition) - BigInt(resumePosition);
    this.show(
      "on",
      `Live at commit ${position(resumePosition)}${lag > 0n ? `, ${count(lag)} to come` : ""}. ${count(this.events)} received${
        this.events > ROWS_MAX ? `, the last ${ROWS_MAX} shown` : ""
      }.`,
    );
  }
  rowOf({ position: commit, collection, id, version, type, leftFilter }) {
    if (type === "EVENT_TYPE_COLLECTION_DELETED") {
      return this.row(
        [collectionLink(collection), hidden(" collection")],
        none(),
        h("strong", { class: "warn" }, "collection deleted, with all that it held"),
        none(),
        none(),
        none(),
        position(commit),
      );
    }
    return this.row(
      documentLink(collection, id, {}, { "data-row": true }),
      [
        h("a", { href: link.document(collection, id, { version: version.version }) }, `v${version.version}`),
        " ",
        kindTag(version.kind),
        leftFilter && [" ", h("span", { class: "tag" }, "left the filter")],
      ],
      changeList(version, { most: 2 }),
      whoTag(version.change),
      version.change?.reason ? said(version.change.reason, "reason") : none("no reason given"),
      timeTag(version.commitTime),
      h(
        "a",
        { href: link.collection(collection, { position: commit }), title: "The collection as of this commit" },
        position(commit),
      ),
    );
  }
}
