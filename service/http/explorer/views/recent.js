// What changed last, in all collections: the ledger, newest first.
import { changeList } from "../value.js";
import { h, replace, said } from "../dom.js";
import { plural, timeTag } from "../format.js";
import { documentLink, heading, kindTag, none, pagedTable, whoTag } from "../parts.js";
import { link } from "../router.js";

const LOOK_MS = 5000;

export const ENTRY_COLUMNS = [
  ["Document", "c-document"],
  ["Version", "c-version"],
  ["What changed", "c-changes"],
  ["Who", "c-who"],
  ["Why", "c-why"],
  ["When", "c-when"],
];

/** The cells of an AuditEntry, for ENTRY_COLUMNS. */
export function entryCells({ collection, id, commitPosition, version }) {
  const number = Number(version.version);
  return [
    documentLink(collection, id, {}, { "data-row": true }),
    [
      h(
        "a",
        {
          href: link.document(collection, id, { version: version.version }),
          title: commitPosition ? `commit ${commitPosition}` : null,
        },
        `v${number}`,
      ),
      " ",
      kindTag(version.kind),
      number > 1 &&
        h(
          "a",
          { class: "small below", href: link.document(collection, id, { a: number - 1, b: number }) },
          `compare with v${number - 1}`,
        ),
    ],
    changeList(version, { most: 2 }),
    whoTag(version.change),
    version.change?.reason ? said(version.change.reason, "reason") : none("no reason given"),
    timeTag(version.commitTime),
  ];
}

export default {
  title: () => "Recent changes",
  render(context, root) {
    const news = h("p", { class: "news", role: "status" });
    replace(
      root,
      heading("Recent changes", {
        actions: [h("a", { href: link.audit() }, "Search the audit"), h("a", { href: link.feed() }, "Follow live")],
      }),
      news,
    );
    const list = pagedTable(context, {
      columns: ENTRY_COLUMNS,
      caption: "Changes, newest first",
      cells: entryCells,
      noun: "change",
      sizes: [50],
      empty: 'Nothing was ever written here. strata create books moby \'{"title": "Moby Dick"}\' makes a first document.',
      load: async (pageToken, pageSize) => {
        const answer = await context.call("DocumentService/Audit", {
          newestFirst: true,
          includeChanges: true,
          pageSize,
          pageToken,
        });
        return { items: answer.entries ?? [], nextPageToken: answer.nextPageToken };
      },
    });
    root.append(list.element);
    this.resume(context, root);
  },
  // Looks how far the ledger has come, and offers what is new: it does not move what somebody reads.
  resume(context, root) {
    const news = root.querySelector(".news");
    let seen = null;
    const look = async () => {
      if (document.hidden) return;
      let last;
      try {
        last = Number((await context.call("FeedService/GetFeed", {})).lastPosition ?? 0);
      } catch (error) {
        // Not permitted, or no commits to count: then there is no such line.
        if (!error.unreachable) clearInterval(timer);
        return;
      }
      seen ??= last;
      if (last > seen) {
        replace(
          news,
          h(
            "button",
            { type: "button", id: "show-new", onclick: () => context.go(location.hash) },
            `${plural(last - seen, "new commit")}: show`,
          ),
        );
      }
    };
    const timer = setInterval(look, LOOK_MS);
    context.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    look();
  },
};
