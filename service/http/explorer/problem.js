// Errors in words: what happened, which reason the server gives with its facts, and what to do.
import { h, said } from "./dom.js";
import { RpcError } from "./rpc.js";
import { whenBack } from "./connection.js";

const HEADINGS = {
  invalid_argument: "The server does not understand this",
  not_found: "Not there",
  permission_denied: "Not permitted",
  unauthenticated: "The server has to know who calls",
  unavailable: "The server does not answer",
  deadline_exceeded: "It took too long",
  resource_exhausted: "Too much at once",
  failed_precondition: "Not possible here",
  out_of_range: "Outside of what there is",
  data_loss: "What is stored is damaged",
  unimplemented: "This server does not have that",
  aborted: "Somebody else was faster",
};

const ADVICE = {
  DOCUMENT_NOT_FOUND: "Look at the id: it counts to the letter. Nothing was ever written under it.",
  DOCUMENT_DELETED: "The history is still there: open the document's timeline.",
  VERSION_NOT_FOUND: "The timeline lists the versions that there are.",
  COLLECTION_NOT_FOUND: "Collections lists those that there are. One that was deleted is only in the audit.",
  INVALID_FILTER: 'Filters are MongoDB\'s, as JSON: {"stock": {"$gt": 0}}.',
  INVALID_PAGE_TOKEN: "Begin again with the first page.",
  UNSUPPORTED_BY_ENGINE:
    "This engine numbers no commits: what spans collections (recent changes, feed) is not to be had from it.",
  POSITION_TRIMMED: "The ledger no longer reaches back so far: begin later.",
  POSITION_UNKNOWN: "No commit has that number yet.",
  OVERLOADED: "Wait a moment, then try again.",
  QUOTA_EXCEEDED: "Wait a moment, then try again; or ask for a larger quota.",
  CHAIN_BROKEN: "Keep the data directory as it is, and ask whoever runs the server to compare with a backup.",
  RECORD_CORRUPT: "Verify the collection: it tells how much is concerned.",
  CREDENTIALS_INVALID: "Look whether the token is whole, and whether it is still valid.",
  PERMISSION_DENIED: "Whoever looks after the server's policy can grant it. Collections lists what you may read.",
  TRANSACTION_NOT_FOUND: "Transactions are known until 24 hours after their end. Its changes stay in the audit.",
  MESSAGE_NOT_FOUND: "It was finished and is not kept, or was purged.",
  DEADLINE_EXCEEDED: "Ask for less at a time: a narrower prefix, a shorter span.",
  UNKNOWN_METHOD: "It is older or newer than this page, or HTTP is allowed less there.",
};

function headingOf(error) {
  return error instanceof RpcError ? (HEADINGS[error.code] ?? "That went wrong") : "This page failed";
}

// Which permission on what: the two facts that somebody needs to ask for it.
function missingPermission({ permission, resource }) {
  return h(
    "p",
    {},
    "Missing: ",
    h("strong", { class: "said" }, permission ?? "a permission"),
    resource && [" on ", h("strong", {}, said(resource))],
    ".",
  );
}

/** What to show where `error` came instead of an answer. `retry` is called by a button, and when the server is back. */
export function problem(error, { retry, signal, compact = false } = {}) {
  if (error?.name === "AbortError") return h("p", { class: "none" }, "Stopped.");
  const facts = Object.entries(error.metadata ?? {}).filter(
    ([name]) => error.code !== "permission_denied" || !["permission", "resource"].includes(name),
  );
  const box = h(
    "div",
    { class: `problem ${compact ? "compact" : ""}`, role: "alert" },
    h(compact ? "p" : "h2", { class: "problem-heading" }, headingOf(error)),
    h("p", {}, said(error.message ?? String(error))),
    error.code === "permission_denied" && missingPermission(error.metadata),
    ADVICE[error.reason] && h("p", { class: "advice" }, ADVICE[error.reason]),
    error.unreachable && h("p", { class: "advice" }, "This goes on by itself when the server is back."),
    error instanceof RpcError &&
      h(
        "dl",
        { class: "facts" },
        h("div", {}, h("dt", {}, "reason"), h("dd", {}, h("code", {}, error.reason || error.code))),
        facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(value)))),
      ),
    retry &&
      h(
        "p",
        {},
        h("button", { type: "button", onclick: retry }, error.code === "unauthenticated" ? "Enter a token" : "Try again"),
      ),
  );
  if (!(error instanceof RpcError)) console.error(error);
  if (error.unreachable && retry) whenBack(retry, signal);
  return box;
}
