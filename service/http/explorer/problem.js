// Errors in words: what happened, which reason the server gives with its facts, and what to do.
import { ADVICE } from "./advice.js";
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
