// Subscriptions: how far each has come, who consumes it, and what it has parked.
import { h, replace, said } from "../dom.js";
import { count, duration, kindWord, plural, position, timeTag } from "../format.js";
import {
  collectionLink,
  documentLink,
  each,
  facts,
  heading,
  lateCell,
  laterCell,
  none,
  pagedTable,
  queryForm,
  section,
  table,
} from "../parts.js";
import { link } from "../router.js";

export default {
  fits: (rest) => rest.length <= 1,
  title: ({ path }) => (path.length > 1 ? `Subscription ${path[1]}` : "Subscriptions"),
  render(context, root) {
    if (context.path.length > 1) one(context, root, context.path[1]);
    else all(context, root);
  },
};

// The partition with the lowest position gives the subscription's.
const lagOf = (partitions) => (partitions ?? []).reduce((most, { lagPositions }) => Math.max(most, Number(lagPositions ?? 0)), 0);

function scopeOf({ collections, idPrefix, kinds, filter }) {
  const parts = [
    collections?.length > 0 ? collections.map((name, index) => [index > 0 && ", ", collectionLink(name)]) : "every collection",
  ];
  if (idPrefix) parts.push([", ids from ", said(idPrefix)]);
  if (kinds?.length > 0) parts.push(`, ${kinds.map(kindWord).join(", ")}`);
  if (filter) parts.push([", where ", h("code", {}, said(JSON.stringify(filter)))]);
  return parts;
}

function all(context, root) {
  const late = [];
  const list = pagedTable(context, {
    columns: [
      ["Subscription", "c-name"],
      ["Events of", "c-content"],
      ["Lag", "c-number"],
      ["Parked", "c-number"],
      ["Consumers", "c-number"],
      ["Oldest open", "c-when"],
      ["Made", "c-when"],
    ],
    caption: "Subscriptions by name",
    noun: "subscription",
    sizes: [50],
    empty: context.query.get("prefix")
      ? "No subscription begins so."
      : "There is no subscription that you may read. strata subscriptions create makes one.",
    cells(subscription) {
      const cells = [laterCell(), laterCell(), laterCell(), laterCell()];
      late.push([subscription.name, cells]);
      return [
        h("a", { href: link.subscription(subscription.name) }, said(subscription.name)),
        scopeOf(subscription),
        ...cells,
        timeTag(subscription.createTime),
      ];
    },
    load: async (pageToken, pageSize) => {
      const answer = await context.call("FeedService/ListSubscriptions", {
        prefix: context.query.get("prefix") ?? "",
        pageSize,
        pageToken,
      });
      return { items: answer.subscriptions ?? [], nextPageToken: answer.nextPageToken };
    },
    onLoaded() {
      each(late.splice(0), async ([name, [lag, parked, consumers, oldest]]) => {
        let answer = {};
        let failed = null;
        try {
          answer = await context.call("FeedService/GetSubscription", { name });
        } catch (error) {
          failed = error;
        }
        lateCell(() => count(lagOf(answer.partitions)), lag, failed);
        lateCell(() => (answer.parked ? h("strong", { class: "warn" }, count(answer.parked)) : "0"), parked, failed);
        lateCell(() => count(answer.consumers), consumers, failed);
        const times = (answer.partitions ?? [])
          .map((partition) => partition.oldestOpenTime)
          .filter(Boolean)
          .sort();
        lateCell(() => (times.length > 0 ? timeTag(times[0], { exact: false }) : none("nothing open")), oldest, failed);
      });
    },
  });
  replace(
    root,
    heading("Subscriptions", { actions: [h("a", { href: link.feed() }, "Feed")] }),
    queryForm(context, { label: "Which subscriptions", fields: [{ name: "prefix", label: "Names that begin with" }] }),
    list.element,
  );
}

function one(context, root, name) {
  const about = section(context, async () => {
    const answer = await context.call("FeedService/GetSubscription", { name });
    const { subscription = {}, partitions = [] } = answer;
    const lag = lagOf(partitions);
    const blocked = partitions.filter((partition) => partition.blocked).length;
    return [
      facts([
        ["events of", scopeOf(subscription)],
        ["lag", lag === 0 ? "none" : plural(lag, "commit")],
        ["parked", count(answer.parked)],
        ["consumers", count(answer.consumers)],
        ["last commit", position(answer.lastPosition)],
        ["began after", `commit ${position(subscription.startPosition)}`],
        ["acknowledged here", `${count(answer.eventsAcknowledged)} in ${plural(answer.acknowledgingCommits ?? 0, "commit")}`],
        ["take-overs", count(answer.takeOvers)],
        ["attempts", count(subscription.maxAttempts)],
        ["back-off", `${duration(subscription.backoffFirst)} to ${duration(subscription.backoffMax)}`],
        ["acknowledge within", duration(subscription.ackTimeout)],
        ["lease", duration(subscription.leaseTtl)],
        ["made", timeTag(subscription.createTime)],
        ["incarnation", position(subscription.incarnation)],
      ]),
      blocked > 0 &&
        h(
          "p",
          { class: "tag warn" },
          `${plural(blocked, "partition is", "partitions are")} blocked: there is no room to park more. Replay or discard parked documents.`,
        ),
      h("h2", {}, plural(partitions.length, "partition")),
      partitionTable(partitions),
    ];
  });
  const parked = pagedTable(context, {
    columns: [
      ["Document", ""],
      ["From version", "c-number"],
      ["Failed", ""],
      ["With", "c-content"],
      ["Parked", "c-when"],
      ["Partition", "c-number"],
      ["Commit", "c-position"],
      ["Next", ""],
    ],
    caption: "Parked documents",
    noun: "parked document",
    sizes: [100],
    empty: "Nothing is parked.",
    cells: (document) => [
      documentLink(document.collection, document.id, { version: document.fromVersion }, { "data-row": true }),
      `v${document.fromVersion}`,
      plural(document.attempts ?? 0, "time"),
      document.reason ? said(document.reason, "reason") : none("none given"),
      timeTag(document.parkTime),
      count(document.partition),
      position(document.position),
      document.action === "PARKED_ACTION_REPLAY" ? "to be delivered again" : "stays parked",
    ],
    load: async (pageToken, pageSize) => {
      const answer = await context.call("FeedService/ListParked", { subscription: name, pageSize, pageToken });
      return { items: answer.documents ?? [], nextPageToken: answer.nextPageToken };
    },
  });
  replace(
    root,
    heading(said(name), { above: h("a", { href: link.subscriptions() }, "Subscriptions") }),
    about.element,
    h("h2", {}, "Parked documents"),
    h(
      "p",
      { class: "hint" },
      "An event of each failed too often; the document's later events wait for it. strata subscriptions replay and discard decide on them.",
    ),
    parked.element,
  );
}

function partitionTable(partitions) {
  const { element, body, row } = table(
    [
      ["Partition", "c-number"],
      ["Consumer", "c-name"],
      ["Acknowledged up to", "c-position"],
      ["Lag", "c-number"],
      ["In flight", "c-number"],
      ["Oldest open", ""],
      ["Failing", "c-content"],
      ["Parked", "c-number"],
      ["Token", "c-position"],
    ],
    { caption: "Partitions" },
  );
  body.append(
    ...partitions.map((partition) =>
      row(
        [count(partition.partition), partition.blocked && [" ", h("strong", { class: "warn" }, "blocked")]],
        partition.consumer ? said(partition.consumer) : none("none"),
        [position(partition.position), partition.index !== undefined && `, event ${partition.index}`],
        count(partition.lagPositions),
        count(partition.inFlight),
        partition.oldestOpenTime ? timeTag(partition.oldestOpenTime, { exact: false }) : none("nothing open"),
        partition.attempts
          ? [
              plural(partition.attempts, "time"),
              partition.reason && [": ", said(partition.reason, "reason")],
              partition.retryTime && [", again ", timeTag(partition.retryTime, { exact: false })],
            ]
          : none(),
        count(partition.parked),
        position(partition.token),
      ),
    ),
  );
  return element;
}
