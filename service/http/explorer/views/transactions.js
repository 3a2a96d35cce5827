// Transactions by status, and one with its documents.
import { h, replace, said } from "../dom.js";
import { count, fullTime, plural, timeTag, word } from "../format.js";
import {
  documentLink,
  facts,
  heading,
  labelTags,
  none,
  pagedTable,
  queryForm,
  section,
  table,
  transactionLink,
  whoTag,
} from "../parts.js";
import { link } from "../router.js";

const STATUSES = ["new", "pending", "applied", "done", "cancelling", "cancelled"];
const statusWord = (status) => word(status, "TRANSACTION_STATUS_");
const statusTag = (status) => h("span", { class: `state state-${statusWord(status)}` }, statusWord(status));
const modeWord = (mode) => (mode === "TRANSACTION_MODE_TWO_PHASE" ? "in two phases" : "in one commit");

export default {
  fits: (rest) => rest.length <= 1,
  title: ({ path }) => (path.length > 1 ? `Transaction ${path[1]}` : "Transactions"),
  render(context, root) {
    if (context.path.length > 1) one(context, root, context.path[1]);
    else all(context, root);
  },
};

function all(context, root) {
  const status = context.query.get("status") ?? "";
  const list = pagedTable(context, {
    columns: [
      ["Transaction", "c-id"],
      ["Status", ""],
      ["Mode", ""],
      ["Documents", "c-content"],
      ["Who", "c-name"],
      ["Why", "c-why"],
      ["Last changed", "c-when"],
    ],
    caption: "Transactions by id",
    noun: "transaction",
    sizes: [50, 500],
    empty: STATUSES.includes(status)
      ? `No transaction is ${status}.`
      : "There is no transaction. They are kept until 24 hours after their end.",
    cells: (each) => [
      h("a", { href: link.transaction(each.id), "data-row": true }, said(each.id)),
      statusTag(each.status),
      modeWord(each.mode),
      [
        (each.participants ?? [])
          .slice(0, 3)
          .map(({ collection, id }, index) => [index > 0 && ", ", documentLink(collection, id)]),
        (each.participants?.length ?? 0) > 3 && ` and ${each.participants.length - 3} more`,
      ],
      whoTag(each.change),
      each.reason
        ? said(each.reason, "reason")
        : each.change?.reason
          ? said(each.change.reason, "reason")
          : none("no reason given"),
      timeTag(each.lastModified),
    ],
    load: async (pageToken, pageSize) => {
      const answer = await context.call("TransactionService/ListTransactions", {
        status: STATUSES.includes(status) ? `TRANSACTION_STATUS_${status.toUpperCase()}` : undefined,
        pageSize,
        pageToken,
      });
      return { items: answer.transactions ?? [], nextPageToken: answer.nextPageToken };
    },
  });
  replace(
    root,
    heading("Transactions"),
    queryForm(context, {
      label: "Which transactions",
      fields: [
        { name: "status", label: "Status", type: "select", options: [["", "all"], ...STATUSES.map((each) => [each, each])] },
      ],
    }),
    list.element,
  );
}

function one(context, root, id) {
  const body = section(context, async () => {
    const { transaction: found } = await context.call("TransactionService/GetTransaction", { id });
    const {
      element,
      body: rows,
      row,
    } = table(
      [
        ["Document", ""],
        ["Built on", "c-number"],
        ["Left in", "c-number"],
        ["", ""],
      ],
      { caption: "Documents" },
    );
    rows.append(
      ...(found.participants ?? []).map(({ collection, id: document, baseVersion, version }) =>
        row(
          documentLink(collection, document, {}, { "data-row": true }),
          baseVersion ? `v${baseVersion}` : none("–"),
          version
            ? h(
                "a",
                {
                  href: link.document(collection, document, { version }),
                },
                `v${version}`,
              )
            : none("undecided, or undone"),
          Number(version) > 1 &&
            h(
              "a",
              { href: link.document(collection, document, { a: Number(version) - 1, b: version }) },
              `compare with v${Number(version) - 1}`,
            ),
        ),
      ),
    );
    return [
      found.id !== id && h("p", { class: "hint" }, "It lost its slot and continued as ", transactionLink(found.id), "."),
      facts(
        [
          ["status", statusTag(found.status)],
          ["mode", modeWord(found.mode)],
          ["who", whoTag(found.change)],
          ["why", found.change?.reason ? said(found.change.reason, "reason") : none("no reason given")],
          ["written down", fullTime(found.createTime)],
          ["last changed", fullTime(found.lastModified)],
          found.reason && ["cancelled because", said(found.reason, "reason")],
        ],
        "wide-facts",
      ),
      labelTags(found.change?.labels),
      h("h2", {}, plural(count(found.participants?.length ?? 0), "document")),
      element,
    ];
  });
  replace(
    root,
    heading(said(id), {
      above: h("a", { href: link.transactions() }, "Transactions"),
      actions: [h("a", { href: link.audit({ transaction_id: id }) }, "Its changes in the audit")],
    }),
    body.element,
  );
}
