// The page: its frame, the views by their URLs, keys, the server's line and the form for a token.
import { announce, h, replace, said } from "./dom.js";
import { refreshTimes, timeTag } from "./format.js";
import { startWatching } from "./connection.js";
import { destination, link, parse, urlOf } from "./router.js";
import { call, forgetToken, hasToken, onUnauthenticated, stream } from "./rpc.js";
import { problem } from "./problem.js";
import audit from "./views/audit.js";
import collection from "./views/collection.js";
import collections from "./views/collections.js";
import documentView from "./views/document.js";
import enrollments from "./views/enrollments.js";
import feed from "./views/feed.js";
import leases from "./views/leases.js";
import queue from "./views/queue.js";
import queues from "./views/queues.js";
import recent from "./views/recent.js";
import server from "./views/server.js";
import subscriptions from "./views/subscriptions.js";
import transactions from "./views/transactions.js";
import verify from "./views/verify.js";

// The first segment of a path, its view, its name in the menu, and the key that goes there after "g".
const MENU = [
  ["recent", "Recent changes", "r"],
  ["collections", "Collections", "c"],
  ["audit", "Audit", "a"],
  ["enrollments", "Enrollments", "e"],
  ["verify", "Verify", "v"],
  ["feed", "Feed", "f"],
  ["subscriptions", "Subscriptions", "s"],
  ["queues", "Queues", "q"],
  ["transactions", "Transactions", "t"],
  ["leases", "Leases", "l"],
  ["server", "Server", "i"],
];

function viewOf({ path }) {
  const [place, ...rest] = path;
  const views = {
    recent,
    audit,
    verify,
    feed,
    enrollments,
    subscriptions,
    transactions,
    leases,
    server,
    collections: rest.length === 0 ? collections : collection,
    queues: rest.length === 0 ? queues : queue,
    documents: documentView,
  };
  const view = Object.hasOwn(views, place) ? views[place] : undefined;
  return view?.fits && !view.fits(rest) ? undefined : view;
}

const main = document.getElementById("main");
// What has been left can be come back to as it was: with what had been loaded, where one was.
const KEPT_VIEWS = 12;
const kept = new Map();
let current = null;
let visits = 0;

class Context {
  constructor({ path, query }) {
    this.path = path;
    this.query = query;
    this.controller = new AbortController();
  }
  get signal() {
    return this.controller.signal;
  }
  call(method, request) {
    return call(method, request, { signal: this.signal });
  }
  stream(method, request, { signal = this.signal } = {}) {
    return stream(method, request, { signal });
  }
  go(hash) {
    if (hash === location.hash) show({ anew: true });
    else location.hash = hash;
  }
  /** Changes the query in the URL without a new view: what the view shows is there already. */
  replaceQuery(changes) {
    if (this !== current?.context) return;
    const query = { ...Object.fromEntries(this.query), ...changes };
    const hash = urlOf(this.path, query);
    this.query = parse(hash).query;
    history.replaceState(history.state, "", hash);
    current.hash = hash;
  }
  title(text) {
    if (this === current?.context) document.title = `${text} · Strata`;
    this.titleText = text;
  }
}

function leave() {
  if (!current) return;
  current.scroll = window.scrollY;
  current.focus = main.contains(document.activeElement) ? document.activeElement : null;
  current.context.controller.abort(new DOMException("the view was left", "AbortError"));
  // One that was still loading would not go on.
  if (current.view?.live || current.root.querySelector("[aria-busy=true]")) return;
  kept.delete(current.visit);
  kept.set(current.visit, current);
  if (kept.size > KEPT_VIEWS) kept.delete(kept.keys().next().value);
}

function show({ anew = false } = {}) {
  const place = parse(location.hash);
  if (place === null) {
    // The skip link, or a damaged address.
    if (location.hash === "#main") return;
    showNothing();
    return;
  }
  const focusId = main.contains(document.activeElement) ? document.activeElement.id : "";
  const samePath = current !== null && String(current.context.path) === String(place.path);
  leave();
  const visit = history.state?.visit;
  const before = kept.get(visit);
  if (!anew && before && before.hash === location.hash) {
    comeBack(before);
    return;
  }
  const number = ++visits;
  history.replaceState({ visit: `${sessionMark}-${number}` }, "");
  const view = viewOf(place);
  if (!view) {
    showNothing();
    return;
  }
  const context = new Context(place);
  const root = h("div", { class: `view view-${place.path[0]}` });
  current = { visit: history.state.visit, hash: location.hash, context, view, root };
  replace(main, root);
  markMenu(place.path[0]);
  context.title(view.title(place));
  try {
    view.render(context, root);
  } catch (error) {
    replace(root, problem(error));
  }
  document.title = `${context.titleText} · Strata`;
  announce(context.titleText);
  closeMenu();
  const again = samePath && focusId && document.getElementById(focusId);
  if (again) {
    again.focus();
  } else if (number > 1) {
    window.scrollTo(0, 0);
    root.querySelector("h1")?.focus({ preventScroll: true });
  }
}

// Of another life of this page, which its history remembers, there are no views left.
const sessionMark = Math.random().toString(36).slice(2);

function comeBack(before) {
  kept.delete(before.visit);
  current = before;
  before.context.controller = new AbortController();
  replace(main, before.root);
  refreshTimes(main);
  markMenu(before.context.path[0]);
  document.title = `${before.context.titleText} · Strata`;
  announce(before.context.titleText);
  before.focus?.focus({ preventScroll: true });
  window.scrollTo(0, before.scroll);
  before.view.resume?.(before.context, before.root);
}

function showNothing() {
  leave();
  current = null;
  markMenu("");
  document.title = "Nothing here · Strata";
  replace(
    main,
    h("h1", { tabindex: "-1" }, "Nothing here"),
    h(
      "p",
      {},
      "This page has no view of that address. ",
      h("a", { href: link.recent() }, "Recent changes"),
      " are a good place to begin.",
    ),
  );
}

function markMenu(place) {
  const shown = { documents: "collections" }[place] ?? place;
  for (const anchor of document.querySelectorAll("#menu a")) {
    if (anchor.dataset.place === shown) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

// ---- the frame

const menuButton = document.getElementById("menu-button");
const menu = document.getElementById("menu");

function closeMenu() {
  menuButton.setAttribute("aria-expanded", "false");
  menu.classList.remove("open");
}

function buildFrame() {
  replace(
    menu,
    h(
      "ul",
      {},
      MENU.map(([place, name]) => h("li", {}, h("a", { href: urlOf([place]), "data-place": place }, name))),
    ),
  );
  menuButton.addEventListener("click", () => {
    const open = menuButton.getAttribute("aria-expanded") !== "true";
    menuButton.setAttribute("aria-expanded", String(open));
    menu.classList.toggle("open", open);
    if (open) menu.querySelector("a").focus();
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    (main.querySelector("h1") ?? main).focus();
  });
  document.getElementById("jump-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const box = document.getElementById("jump");
    if (box.value.trim() === "") return;
    location.hash = destination(box.value);
    box.value = "";
  });
  document.getElementById("keys-button").addEventListener("click", showKeys);
  document.getElementById("token-button").addEventListener("click", () => {
    forgetToken();
    markToken();
    kept.clear();
    announce("The token is forgotten.");
    show({ anew: true });
  });
}

function showServer(info) {
  replace(
    document.getElementById("server-line"),
    h("a", { href: link.server() }, `Strata ${info.version ?? ""}`),
    ` on ${info.engine ?? "an unknown engine"}, up since `,
    timeTag(info.startTime, { exact: false }),
    info.writable ? "" : h("strong", { class: "warn" }, " · refuses writes at present"),
  );
}

// ---- the token

function markToken() {
  document.getElementById("token-button").hidden = !hasToken();
}

function askForToken(error) {
  return new Promise((resolve) => {
    const field = h("input", {
      id: "token",
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      required: true,
      "aria-describedby": "token-hint",
    });
    let given = null;
    const dialog = h(
      "dialog",
      {
        class: "dialog",
        "aria-labelledby": "token-heading",
        onclose: () => {
          dialog.remove();
          field.value = "";
          resolve(given);
          // Once the calls that wait for it have the token.
          setTimeout(() => {
            markToken();
            if (given !== null) lookAtServer();
          });
        },
      },
      h(
        "form",
        { method: "dialog", onsubmit: () => (given = field.value.trim() || null) },
        h("h2", { id: "token-heading" }, "The server asks for a token"),
        h("p", {}, said(error.message)),
        h("label", { for: "token" }, "Token"),
        field,
        h(
          "p",
          { class: "hint", id: "token-hint" },
          "It stays in this page's memory, and is gone when the page is closed or loaded anew.",
        ),
        h(
          "p",
          { class: "dialog-actions" },
          h("button", { type: "submit", class: "strong" }, "Go on"),
          h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
    field.focus();
  });
}

// ---- keys

const KEYS = [
  ["/", "Go to a collection or document"],
  ["j / k, ↓ / ↑", "Next, previous row"],
  ["Enter", "Open the row"],
  ["n", "Load more"],
  ["[ / ]", "One change earlier, later, where there is a slider"],
  ["?", "These keys"],
  ["Esc", "Close, or leave a field"],
  ...MENU.map(([, name, key]) => [`g ${key}`, name]),
];

function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = h(
    "dialog",
    { class: "dialog", "aria-labelledby": "keys-heading", onclose: () => dialog.remove() },
    h("h2", { id: "keys-heading" }, "Keys"),
    h(
      "dl",
      { class: "keys" },
      KEYS.map(([keys, words]) => h("div", {}, h("dt", {}, h("kbd", {}, keys)), h("dd", {}, words))),
    ),
    h("form", { method: "dialog" }, h("button", { type: "submit" }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}

// The link that a row is opened by.
const ROW_LINK = "[data-row], td:first-child a[href]";
const ROWS = "table.rows tbody tr, [data-version]";

// From row to row by their places in the page: of ten thousand, most are not laid out, and asking where each is would do that.
function moveRow(step) {
  const beside = (element) => (step > 0 ? element?.nextElementSibling : element?.previousElementSibling);
  // After the last one of a group comes the first of the next.
  const within = (group) => (step > 0 ? group?.firstElementChild : group?.lastElementChild);
  const next = (row) => beside(row) ?? (row.matches("tr") ? null : within(beside(row.parentElement)));
  const here = document.activeElement.closest(ROWS);
  let row = here ? next(here) : main.querySelector(ROWS);
  while (row && !row.querySelector(ROW_LINK)) row = next(row);
  const target = row?.querySelector(ROW_LINK);
  if (!target) return;
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "nearest" });
}

const typing = (element) =>
  element.matches("input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]");
let afterG = 0;

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const at = document.activeElement ?? document.body;
  if (event.key === "Escape") {
    if (menu.classList.contains("open")) {
      closeMenu();
      menuButton.focus();
    } else if (typing(at)) {
      at.blur();
    }
    return;
  }
  if (typing(at) || document.querySelector("dialog[open]")) return;
  const arrows = event.key === "ArrowDown" || event.key === "ArrowUp";
  // Arrows belong to whatever has a use for them: sliders, choices, what scrolls inside itself, and the page until a row has the focus.
  if (arrows && (at.matches("input, [tabindex='0']") || !at.closest(ROWS))) return;
  let done = true;
  if (performance.now() - afterG < 1500 && MENU.some(([, , key]) => key === event.key)) {
    location.hash = urlOf([MENU.find(([, , key]) => key === event.key)[0]]);
    afterG = 0;
  } else if (event.key === "g") afterG = performance.now();
  else if (event.key === "/") document.getElementById("jump").focus();
  else if (event.key === "?") showKeys();
  else if (event.key === "j" || event.key === "ArrowDown") moveRow(1);
  else if (event.key === "k" || event.key === "ArrowUp") moveRow(-1);
  else if (event.key === "n") main.querySelector(".more-button")?.click();
  else if (event.key === "[" || event.key === "]")
    main.querySelector(event.key === "[" ? "[data-earlier]" : "[data-later]")?.click();
  else done = false;
  if (done) event.preventDefault();
}

buildFrame();
onUnauthenticated(askForToken);
const lookAtServer = startWatching(showServer);
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", () => show());
setInterval(() => refreshTimes(document.body), 10_000);
show();
