// The audit: who changed what, when and why, by actor, kind, time, request, transaction.
import { replace } from "../dom.js";
import { localText } from "../format.js";
import { heading, kindsOf, pagedTable, queryForm } from "../parts.js";
import { ENTRY_COLUMNS, entryCells } from "./recent.js";

export default {
  fits: (rest) => rest.length === 0,
  title: () => "Audit",
  render(context, root) {
    const { query } = context;
    const form = queryForm(context, {
      label: "Which changes",
      submit: "Search",
      fields: [
        { name: "collection", label: "Collection" },
        { name: "id", label: "Document id", hint: "Needs a collection." },
        { name: "actor", label: "Actor" },
        { name: "kinds", label: "Kinds", type: "kinds" },
        { name: "from", label: "From", type: "time", value: query.get("from") && localText(query.get("from")) },
        { name: "to", label: "Before", type: "time", value: query.get("to") && localText(query.get("to")) },
        { name: "request_id", label: "Request id" },
        { name: "transaction_id", label: "Transaction" },
        {
          name: "order",
          label: "Order",
          type: "select",
          options: [
            ["", "newest first"],
            ["commits", "in commit order"],
          ],
        },
      ],
    });
    const narrowed = [...query.keys()].some((name) => name !== "order");
    const list = pagedTable(context, {
      columns: ENTRY_COLUMNS,
      caption: "Changes",
      cells: entryCells,
      noun: "change",
      sizes: [50, 500],
      empty: narrowed ? "No change matches." : "Nothing was ever written here.",
      load: async (pageToken, pageSize) => {
        const answer = await context.call("DocumentService/Audit", {
          collection: query.get("collection") ?? "",
          id: query.get("id") ?? "",
          actor: query.get("actor") ?? "",
          kinds: kindsOf(query.get("kinds")),
          startTime: query.get("from") || undefined,
          endTime: query.get("to") || undefined,
          requestId: query.get("request_id") ?? "",
          transactionId: query.get("transaction_id") ?? "",
          newestFirst: query.get("order") !== "commits",
          includeChanges: true,
          pageSize,
          pageToken,
        });
        return { items: answer.entries ?? [], nextPageToken: answer.nextPageToken };
      },
    });
    replace(root, heading("Audit"), form, list.element);
  },
};
