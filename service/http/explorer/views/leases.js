// Leases: who may act for a name at present, until when, and how far the holders have come.
import { h, replace, said } from "../dom.js";
import { duration, position, timeTag } from "../format.js";
import { heading, labelTags, none, pagedTable, queryForm } from "../parts.js";
import { link } from "../router.js";

export default {
  fits: (rest) => rest.length === 0,
  title: () => "Leases",
  render(context, root) {
    const prefix = context.query.get("prefix") ?? "";
    const list = pagedTable(context, {
      columns: [
        ["Lease", "c-name"],
        ["Holder", "c-name"],
        ["Expires", "c-when"],
        ["Lasts", "c-number"],
        ["Token", "c-position"],
        ["Reached commit", "c-position"],
        ["Facts", "c-content"],
      ],
      caption: "Leases by name",
      noun: "lease",
      sizes: [100],
      empty: prefix ? "No lease begins so." : "No lease was ever acquired that you may read. strata lease acquire takes one.",
      cells: ({ name, holder, expireTime, ttl, token, position: reached, index, metadata }) => [
        said(name),
        holder ? said(holder) : none("released"),
        holder
          ? [timeTag(expireTime), Date.parse(expireTime) < Date.now() && h("span", { class: "tag" }, "may be taken")]
          : none(),
        duration(ttl),
        position(token),
        reached && reached !== "0" ? `${position(reached)}${index === undefined ? "" : `, event ${index}`}` : none("none"),
        labelTags(metadata) ?? none(),
      ],
      load: async (pageToken, pageSize) => {
        const answer = await context.call("LeaseService/ListLeases", { prefix, pageSize, pageToken });
        return { items: answer.leases ?? [], nextPageToken: answer.nextPageToken };
      },
    });
    replace(
      root,
      heading("Leases", {
        actions: [
          h(
            "a",
            { href: link.leases({ prefix: prefix.startsWith("$") ? "" : "$" }) },
            prefix.startsWith("$") ? "Clients' leases" : "The server's own",
          ),
        ],
      }),
      queryForm(context, { label: "Which leases", fields: [{ name: "prefix", label: "Names that begin with" }] }),
      list.element,
    );
  },
};
