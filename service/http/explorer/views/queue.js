// One queue: its settings, what is in it by state, dead letters too, its schedules, and each message.
import { contentOf } from "../bson.js";
import { contentPreview, contentView, copyButton } from "../value.js";
import { h, replace, said } from "../dom.js";
import { count, duration, fullTime, plural, timeTag, word } from "../format.js";
import { collectionLink, facts, heading, labelTags, none, pagedTable, section } from "../parts.js";
import { link } from "../router.js";

const STATES = ["ready", "scheduled", "reserved", "waiting", "dead", "finished"];
const enumerator = (state) => (STATES.includes(state) ? `MESSAGE_STATE_${state.toUpperCase()}` : undefined);
const stateWord = (state) => word(state, "MESSAGE_STATE_");
const stateTag = (state) => h("span", { class: `state state-${stateWord(state)}` }, stateWord(state));

export default {
  fits: (rest) => rest.length === 1 || (rest.length === 3 && rest[1] === "messages"),
  title: ({ path }) => (path.length === 2 ? `Queue ${path[1]}` : `Message ${path[3]}`),
  render(context, root) {
    const [, name, , id] = context.path;
    if (id !== undefined) message(context, root, name, id);
    else queue(context, root, name);
  },
};

function settingsOf({ settings = {}, createTime, counts = {}, statistics = {} }) {
  return [
    facts([
      ["reserved for", duration(settings.reservationTimeout)],
      ["tries", settings.maxTries ? count(settings.maxTries) : "without limit"],
      [
        "dead letters go to",
        settings.deadLetterQueue
          ? h("a", { href: link.queue(settings.deadLetterQueue) }, said(settings.deadLetterQueue))
          : "nowhere: they stay here",
      ],
      ["retry after", `${duration(settings.retryDelay)} to ${duration(settings.retryDelayMax)}`],
      ["finished are kept", settings.historyRetention ? duration(settings.historyRetention) : "not at all"],
      ["messages live", settings.messageLifetime ? duration(settings.messageLifetime) : "for ever"],
      [
        "consumed by",
        settings.enrollments
          ? [
              "the server, into ",
              collectionLink(settings.enrollments.collection),
              settings.enrollments.set ? [", set ", said(settings.enrollments.set)] : "",
              `, ${count(settings.enrollments.maxInFlight || 64)} at once`,
            ]
          : "clients",
      ],
      ["oldest ready", statistics.oldestReadyAge ? duration(statistics.oldestReadyAge) : "none"],
      ["low watermark", statistics.lowWatermark ? count(statistics.lowWatermark) : "none"],
      ["made", timeTag(createTime)],
    ]),
    h(
      "details",
      {},
      h("summary", {}, "Since this server started"),
      facts([
        ["pushed", count(counts.pushed)],
        ["handed out", count(counts.handedOut)],
        ["acknowledged", count(counts.acknowledged)],
        ["rolled back", count(counts.rolledBack)],
        ["died", count(counts.died)],
        ["races lost", count(counts.racesLost)],
        ["commits", count(counts.commits)],
        ["operations in them", count(counts.operations)],
      ]),
    ),
  ];
}

// States as tabs, with their counts. "All" is what is not finished, as the server lists it.
function tabs(context, name, statistics) {
  const chosen = STATES.includes(context.query.get("state")) ? context.query.get("state") : "";
  const tab = (state, words, number) =>
    h(
      "li",
      {},
      h(
        "a",
        {
          href: link.queue(name, { state }),
          class: state === "dead" && Number(number) > 0 ? "warn" : "",
          "aria-current": state === chosen ? "page" : null,
          id: `state-${state || "all"}`,
        },
        words,
        number !== undefined && [" ", h("span", { class: "count" }, count(number))],
      ),
    );
  return h(
    "nav",
    { class: "tabs", "aria-label": "Messages by state" },
    h(
      "ul",
      {},
      tab("", "not finished"),
      STATES.map((state) => tab(state, state, state === "finished" ? undefined : (statistics?.[state] ?? 0))),
    ),
  );
}

function queue(context, root, name) {
  const state = context.query.get("state") ?? "";
  const tabPlace = h("div", {}, tabs(context, name, null));
  const pausedPlace = h("div", {});
  const about = section(context, async () => {
    const { queue: found = {} } = await context.call("QueueService/GetQueue", { name });
    const focused = document.activeElement?.id;
    replace(tabPlace, tabs(context, name, found.statistics ?? {}));
    if (focused?.startsWith("state-")) document.getElementById(focused)?.focus();
    replace(
      pausedPlace,
      found.settings?.paused && h("p", { class: "tag warn" }, "Paused: nothing is handed out; all else goes on."),
      found.statistics &&
        !found.statistics.exact &&
        h("p", { class: "hint" }, "A count is under way: the numbers are not exact yet."),
    );
    return settingsOf(found);
  });
  const list = pagedTable(context, {
    columns: [
      ["Message", "c-hash"],
      ["State", ""],
      ["Payload", "c-content"],
      ["Due", "c-when"],
      ["Tries", "c-number"],
      ["Priority", "c-number"],
      ["Key", "c-name"],
      ["Why", "c-why"],
    ],
    caption: "Messages",
    noun: "message",
    sizes: [50, 500],
    empty: state ? `No message is ${state}.` : "No message is unfinished.",
    cells: (each) => [
      h("a", { href: link.message(name, each.messageId), class: "hash", "data-row": true }, each.messageId),
      stateTag(each.state),
      h("span", { class: "value preview" }, contentPreview(contentOf(each.payload) ?? new Map(), 120) || "empty"),
      timeTag(each.due),
      count(each.tries),
      count(each.priority),
      each.orderingKey ? said(each.orderingKey) : none(),
      each.reason ? said(each.reason, "reason") : none(),
    ],
    load: async (pageToken, pageSize) => {
      const answer = await context.call("QueueService/ListMessages", {
        queue: name,
        state: enumerator(state),
        pageSize,
        pageToken,
        encoding: "ENCODING_BSON",
      });
      return { items: answer.messages ?? [], nextPageToken: answer.nextPageToken };
    },
  });
  const schedules = pagedTable(context, {
    columns: [
      ["Schedule", "c-name"],
      ["When", ""],
      ["Next", "c-when"],
      ["Payload", "c-content"],
      ["Priority", "c-number"],
    ],
    caption: "Schedules",
    noun: "schedule",
    sizes: [50],
    empty: "There is no schedule.",
    cells: (each) => [
      said(each.name),
      each.cron ? [h("code", {}, said(each.cron)), " UTC"] : `every ${duration(each.every)}`,
      timeTag(each.nextTime),
      h("span", { class: "value preview" }, contentPreview(contentOf(each.message?.payload) ?? new Map(), 120) || "empty"),
      count(each.message?.priority),
    ],
    load: async (pageToken, pageSize) => {
      const answer = await context.call("QueueService/ListSchedules", {
        queue: name,
        pageSize,
        pageToken,
        encoding: "ENCODING_BSON",
      });
      return { items: answer.schedules ?? [], nextPageToken: answer.nextPageToken };
    },
  });
  replace(
    root,
    heading(said(name), { above: h("a", { href: link.queues() }, "Queues") }),
    pausedPlace,
    about.element,
    h("h2", {}, "Messages"),
    tabPlace,
    list.element,
    h("h2", {}, "Schedules"),
    schedules.element,
  );
}

function message(context, root, name, id) {
  const body = section(context, async () => {
    const { message: found } = await context.call("QueueService/GetMessage", {
      queue: name,
      messageId: id,
      encoding: "ENCODING_BSON",
    });
    const payload = contentOf(found.payload) ?? new Map();
    const dueWords = {
      ready: "due",
      scheduled: "due",
      waiting: "due",
      reserved: "reserved until",
      dead: "died",
      finished: "finished",
    }[stateWord(found.state)];
    const origin = found.headers?.dead_letter_queue;
    return [
      facts(
        [
          ["state", stateTag(found.state)],
          [dueWords, fullTime(found.due)],
          ["pushed", fullTime(found.pushTime)],
          ["expires", found.expireTime ? fullTime(found.expireTime) : "never"],
          ["tries", plural(found.tries ?? 0, "hand-out")],
          ["ever handed out", plural(found.delivery ?? 0, "time")],
          ["priority", count(found.priority)],
          ["ordering key", found.orderingKey ? said(found.orderingKey) : none("none")],
          ["sequence number", found.sequenceNumber ? count(found.sequenceNumber) : none("none")],
          ["reason", found.reason ? said(found.reason, "reason") : none("none given")],
          origin && ["died in", h("a", { href: link.queue(origin) }, said(origin))],
        ],
        "wide-facts",
      ),
      h("h2", {}, "Headers"),
      labelTags(found.headers) ?? h("p", { class: "none" }, "None."),
      h("div", { class: "pane-heading" }, h("h2", {}, "Payload"), copyButton(payload)),
      contentView(payload),
    ];
  });
  replace(
    root,
    heading(h("span", { class: "hash" }, id), {
      above: [h("a", { href: link.queues() }, "Queues"), " / ", h("a", { href: link.queue(name) }, said(name))],
    }),
    body.element,
  );
}
