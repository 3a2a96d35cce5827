// Errors in words: what happened, which reason the server gives with its facts, and what to do.
import { h, said } from "./dom.js";
import { RpcError } from "./rpc.js";
import { whenBack } from "./connection.js";

const HEADINGS = {
  invalid_argument: "The server does not understand this",
  not_found: "Not there",
  permission_denied: "Not permitted",
  unauthenticated: "The server does not know the caller",
  unavailable: "The server does not answer",
  deadline_exceeded: "It took too long",
  resource_exhausted: "Too much at once",
  failed_precondition: "Not possible here",
  out_of_range: "Out of range",
  data_loss: "The stored data is damaged",
  unimplemented: "This server does not have that",
  aborted: "Another writer was faster",
};

const ADVICE = {
  DOCUMENT_NOT_FOUND: "Check the id, letter by letter. No version was ever written under it.",
  DOCUMENT_DELETED: "The history is still there: open the document's timeline.",
  VERSION_NOT_FOUND: "The timeline lists all versions.",
  COLLECTION_NOT_FOUND: "Collections lists all collections. A deleted collection is only in the audit.",
  INVALID_FILTER: 'Filters are MongoDB\'s, as JSON: {"stock": {"$gt": 0}}.',
  INVALID_PAGE_TOKEN: "Begin again with the first page.",
  UNSUPPORTED_BY_ENGINE:
    "This engine numbers no commits: views over all collections (recent changes, feed) need another engine.",
  POSITION_TRIMMED: "The ledger no longer has this position: begin later.",
  POSITION_UNKNOWN: "No commit has that number yet.",
  OVERLOADED: "Wait a moment, then try again.",
  QUOTA_EXCEEDED: "Wait a moment, then try again; or ask for a larger quota.",
  CHAIN_BROKEN: "Keep the data directory unchanged, and ask the server's operator to compare it with a backup.",
  RECORD_CORRUPT: "Verify the collection to see how much is damaged.",
  CREDENTIALS_INVALID: "Check that the token is complete and still valid.",
  PERMISSION_DENIED: "The server's operator can grant it in the policy. Collections lists the collections that you may read.",
  TRANSACTION_NOT_FOUND: "Transactions are kept until 24 hours after their end. The changes stay in the audit.",
  MESSAGE_NOT_FOUND: "It was finished and is not kept, or was purged.",
  DEADLINE_EXCEEDED: "Request less at a time: a narrower prefix, a shorter span.",
  UNKNOWN_METHOD: "The server is older or newer than this page, or its HTTP port allows only reads.",
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
