// Verify: proves that a collection, a document, or the ledger is whole, and shows how far it has come.
import { announce, h, replace, said } from "../dom.js";
import { hex, plural, position, word } from "../format.js";
import { facts, heading, none, queryForm, section, table } from "../parts.js";
import { problem } from "../problem.js";
import { link } from "../router.js";

// A stream that breaks is gone on with where it broke; one that breaks at once, again and again, is given up.
const BREAKS_MAX = 5;

const base64Of = (digits) => btoa(digits.replace(/../g, (byte) => String.fromCharCode(Number.parseInt(byte, 16))));

export default {
  live: true,
  fits: (rest) => rest.length <= 1,
  title: ({ path }) => (path.length > 1 ? `Verify ${path[1]}` : "Verify"),
  render(context, root) {
    const [, collection = ""] = context.path;
    const { query } = context;
    const id = query.get("id") ?? "";
    const head = { position: query.get("position") ?? "", hash: (query.get("hash") ?? "").toLowerCase() };
    const form = queryForm(context, {
      label: "What to verify",
      submit: "Choose",
      path: (chosen) => {
        const path = chosen.collection ? ["verify", chosen.collection] : ["verify"];
        delete chosen.collection;
        return path;
      },
      fields: [
        { name: "collection", label: "Collection", value: collection, hint: "Empty: the ledger alone." },
        { name: "id", label: "Document id", hint: "Empty: all of them." },
        { name: "position", label: "Ledger up to", type: "number", placeholder: "commit" },
        { name: "hash", label: "has the hash", placeholder: "64 hexadecimal digits", wide: true },
      ],
    });
    const wrong =
      wrongHead(head) ?? (!collection && !head.position ? "Name a collection, or a position in the ledger with its hash." : null);
    const place = h("div", { class: "verification" });
    const start = h("button", { type: "button", class: "strong", id: "start", disabled: wrong !== null }, "Verify now");
    start.addEventListener("click", () =>
      run(context, place, start, {
        collection,
        id,
        expectHead: head.position ? { position: head.position, hash: base64Of(head.hash) } : undefined,
      }),
    );
    replace(
      root,
      heading(collection ? ["Verify ", said(collection)] : "Verify", {
        above: collection ? h("a", { href: link.collection(collection) }, "Collection") : null,
      }),
      h(
        "p",
        { class: "lead" },
        "Every version dense and in order, contents as their hashes say, the chain of hashes intact, the ledger in agreement. " +
          "It reads everything and changes nothing; writers continue meanwhile.",
      ),
      form,
      wrong && (collection || head.position || head.hash)
        ? h("p", { class: "field-error" }, wrong)
        : wrong && h("p", { class: "hint" }, wrong),
      h("p", {}, start),
      place,
      h("h2", {}, "Where the ledger ends"),
      ledgerHead(context, collection),
    );
  },
};

function wrongHead({ position, hash }) {
  if (!position && !hash) return null;
  if (!/^\d+$/.test(position)) return "Ledger up to: a whole number, from 0.";
  return /^[0-9a-f]{64}$/.test(hash) ? null : "has the hash: 64 hexadecimal digits, as the ledger's head shows them.";
}

function ledgerHead(context, collection) {
  return section(context, async () => {
    const { head = {} } = await context.call("CollectionService/GetLedgerHead", {});
    const digits = hex(head.hash);
    return [
      facts([
        ["commit", position(head.position)],
        ["hash", h("code", { class: "hash" }, digits || "none yet")],
      ]),
      digits &&
        h(
          "p",
          { class: "hint" },
          "Keep both: later they prove that no entry up to here was removed, added or changed. ",
          h(
            "a",
            { href: link.verify(collection, { position: head.position, hash: digits }) },
            "Compare the ledger with this head",
          ),
        ),
    ];
  }).element;
}

async function run(context, place, start, request) {
  const controller = new AbortController();
  context.signal.addEventListener("abort", () => controller.abort(context.signal.reason), { once: true });
  const stop = h(
    "button",
    { type: "button", onclick: () => controller.abort(new DOMException("stopped", "AbortError")) },
    "Stop",
  );
  const bar = h("progress", { "aria-label": "Verification" });
  const words = h("p", { class: "progress-words", role: "status" }, "Beginning …");
  const findings = findingTable(request.collection);
  const verdict = h("div", {});
  start.hidden = true;
  replace(place, h("div", { class: "progress" }, bar, stop), words, verdict, findings.element);
  stop.focus();

  const total = await expected(context, request);
  if (total > 0) bar.max = total;
  const began = performance.now();
  let resumeToken = "";
  let last = {};
  const tell = () => {
    words.textContent = `${plural(last.documents ?? 0, "document")}, ${plural(last.versions ?? 0, "version")}, ${plural(
      last.ledgerEntries ?? 0,
      "ledger entry",
      "ledger entries",
    )}, ${((performance.now() - began) / 1000).toFixed(1)} s.`;
    // An estimate may be below what there is.
    if (total > 0 && Number(last.documents ?? 0) < total) bar.value = Number(last.documents ?? 0);
  };
  const end = (...nodes) => {
    bar.remove();
    stop.remove();
    start.hidden = false;
    start.textContent = "Verify again";
    replace(verdict, nodes);
    start.focus();
  };
  for (let breaks = 0; ;) {
    try {
      for await (const message of context.stream(
        "CollectionService/Verify",
        { ...request, resumeToken },
        { signal: controller.signal },
      )) {
        breaks = 0;
        last = message;
        resumeToken = message.resumeToken ?? "";
        findings.add(message.findings ?? []);
        tell();
      }
      // The verdict is how the stream ends, and not the message before: DATA_LOSS comes after the last one.
      tell();
      const open = findings.count();
      announce("Whole.");
      end(
        h(
          "p",
          { class: "verdict good" },
          h("span", { "aria-hidden": "true" }, "✓ "),
          open === 0 ? "Whole." : `Whole: ${plural(open, "finding")} that the next update mends.`,
        ),
      );
      return;
    } catch (error) {
      if (error?.name === "AbortError") {
        if (!context.signal.aborted) end(h("p", { class: "none" }, "Stopped."));
        return;
      }
      if (error.unreachable && resumeToken && ++breaks < BREAKS_MAX) {
        words.textContent = "The stream broke off; resuming …";
        await new Promise((resolve) => setTimeout(resolve, 500 * breaks));
        continue;
      }
      tell();
      end(
        error.reason === "CHAIN_BROKEN" &&
          h("p", { class: "verdict bad" }, h("span", { "aria-hidden": "true" }, "✗ "), "Not whole."),
        problem(error, { signal: context.signal }),
      );
      return;
    }
  }
}

// How many documents there are about, to fill the bar by. Without it the bar only moves.
async function expected(context, { collection, id }) {
  if (!collection || id) return 0;
  try {
    return Number(
      (await context.call("CollectionService/GetCollection", { name: collection })).collection?.statistics?.documents ?? 0,
    );
  } catch {
    return 0;
  }
}

function findingTable(collection) {
  const { element, body, row } = table(
    [
      ["Document", ""],
      ["Version", "c-number"],
      ["Finding", ""],
      ["Particulars", "c-content"],
      ["State", ""],
    ],
    { caption: "Findings" },
  );
  element.hidden = true;
  let number = 0;
  return {
    element,
    count: () => number,
    add(items) {
      number += items.length;
      element.hidden = number === 0;
      for (const { id, version, kind, problem: particulars, recoverable, repaired, commitPosition } of items) {
        body.append(
          row(
            id ? h("a", { href: link.document(collection, id) }, said(id)) : none("the ledger"),
            version && version !== "0" ? `v${version}` : none("all"),
            word(kind, "FINDING_KIND_"),
            [said(particulars ?? ""), commitPosition && commitPosition !== "0" && ` (commit ${position(commitPosition)})`],
            repaired ? "repaired" : recoverable ? "recoverable" : h("strong", { class: "warn" }, "damage"),
          ),
        );
      }
    },
  };
}
