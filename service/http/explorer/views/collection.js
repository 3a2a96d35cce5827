// The documents of a collection: by prefix, by filter, as of a time.
import { contentOf } from "../bson.js";
import { contentPreview } from "../value.js";
import { h, replace, said } from "../dom.js";
import { addMicroseconds, bytes, count, fullTime, localText, relativeText, timeTag, utcText } from "../format.js";
import { facts, heading, none, pagedTable, queryForm, section } from "../parts.js";
import { slider } from "../slider.js";
import { link } from "../router.js";
import { strategyWord } from "./collections.js";

const STEPS = 1000;

// Members that get columns of their own, as JSON Pointers or plain names: "title, /address/city".
const pointersOf = (text) =>
  (text ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "")
    .map((each) => (each.startsWith("/") ? each : `/${each}`));

function memberAt(content, pointer) {
  let value = content;
  for (const part of pointer.slice(1).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    value = Array.isArray(value) ? value[Number(name)] : value instanceof Map ? value.get(name) : undefined;
  }
  return value;
}

function statisticsOf({ statistics, strategy, options, createTime, incarnation }) {
  const stored = (statistics?.keyspaces ?? []).map(({ keyspace, records, bytes: size }) => [
    keyspace,
    `${count(records)} records, ${bytes(size)}`,
  ]);
  return [
    facts([
      ["documents", `about ${count(statistics?.documents)}`],
      ["versions", `about ${count(statistics?.versions)}`],
      ["strategy", strategyWord(strategy), options?.keyframeInterval ? `, a keyframe every ${options.keyframeInterval}` : ""],
      ["made", timeTag(createTime)],
    ]),
    h("details", {}, h("summary", {}, "Storage"), facts([...stored, ["incarnation", count(incarnation)]])),
  ];
}

export default {
  fits: (rest) => rest.length === 1,
  title: ({ path }) => path[1],
  render(context, root) {
    const [, name] = context.path;
    const sliderPlace = h("div", { class: "slider-place" });
    const listPlace = h("div", {});
    const showList = () => replace(listPlace, documentList(context, name).element);
    const about = section(context, async () => {
      const { collection } = await context.call("CollectionService/GetCollection", { name });
      replace(sliderPlace, timeSlider(context, collection ?? {}, showList));
      return statisticsOf(collection ?? {});
    });
    const form = queryForm(context, {
      label: "Which documents",
      keep: ["at", "position"],
      fields: [
        { name: "prefix", label: "Ids that begin with" },
        { name: "where", label: "Filter", type: "json", placeholder: '{"stock": {"$gt": 0}}', wide: true },
        { name: "fields", label: "Columns", placeholder: "title, /address/city" },
        { name: "deleted", label: "Deleted ones too", type: "check" },
      ],
    });
    replace(
      root,
      heading(said(name), {
        above: h("a", { href: link.collections() }, "Collections"),
        actions: [
          h("a", { href: link.audit({ collection: name }) }, "Audit"),
          h("a", { href: link.feed({ collections: name }) }, "Feed"),
          h("a", { href: link.verify(name) }, "Verify"),
        ],
      }),
      about.element,
      form,
      sliderPlace,
      listPlace,
    );
    showList();
  },
};

function documentList(context, name) {
  const { query } = context;
  const at = query.get("at") ?? "";
  const position = query.get("position") ?? "";
  const members = pointersOf(query.get("fields"));
  const filter = query.get("where");
  const columns = [
    ["Document", "c-id"],
    ["Version", "c-version"],
    ...(members.length > 0 ? members.map((pointer) => [pointer.slice(1), "c-member"]) : [["Content", "c-content"]]),
    ["Changed", "c-when"],
  ];
  return pagedTable(context, {
    columns,
    caption: "Documents by id",
    noun: "document",
    sizes: [50, 500],
    empty:
      query.get("prefix") || filter
        ? "No document matches."
        : at || position
          ? "There was no document then."
          : "There is no document.",
    cells(document) {
      const content = contentOf(document.content);
      const opened = h(
        "a",
        {
          href: link.document(name, document.id, at || position ? { version: document.version } : {}),
          "data-row": true,
          class: "id-part",
        },
        said(document.id),
      );
      const previews =
        members.length > 0
          ? members.map((pointer) => {
              const value = memberAt(content, pointer);
              return value === undefined ? none() : h("span", { class: "value" }, contentPreview(value, 60));
            })
          : [content === undefined ? none("deleted") : h("span", { class: "value preview" }, contentPreview(content, 160))];
      const pending = document.pendingTransactionId && [
        " ",
        h("a", { class: "tag warn", href: link.transaction(document.pendingTransactionId) }, "pending"),
      ];
      return [opened, [`v${document.version}`, pending], ...previews, timeTag(document.updateTime)];
    },
    load: async (pageToken, pageSize) => {
      const answer = await context.call("DocumentService/List", {
        collection: name,
        idPrefix: query.get("prefix") ?? "",
        showDeleted: query.has("deleted"),
        pageSize,
        pageToken,
        encoding: "ENCODING_BSON",
        fields: members,
        filter: filter ? JSON.parse(filter) : undefined,
        atTime: at || undefined,
        atPosition: position || undefined,
      });
      return { items: answer.documents ?? [], nextPageToken: answer.nextPageToken, examined: answer.examined };
    },
  });
}

// Over the time since the collection was made; what it is moved to becomes part of the URL. The buttons go to the commits, which the ledger
// knows.
function timeSlider(context, { name, createTime }, showList) {
  if (!createTime) return null;
  const from = Date.parse(createTime);
  const until = Math.max(Date.now(), from + 1);
  let at = context.query.get("at") ?? "";
  const stepOf = (time) =>
    time === "" ? STEPS : Math.max(0, Math.min(STEPS - 1, Math.round(((Date.parse(time) - from) / (until - from)) * STEPS)));
  // Where the slider stands for an exact time, it says that one and not the step's.
  const timeOf = (step) => {
    if (step === stepOf(at)) return at;
    return step >= STEPS ? "" : new Date(from + ((until - from) * step) / STEPS).toISOString();
  };
  const note = h("p", { class: "hint", role: "status" });
  const positionNote = h("p", { class: "hint" });
  const back = h("button", { type: "button", class: "quiet", onclick: () => go("") }, "Back to now");
  const tell = () => {
    const position = context.query.get("position");
    replace(positionNote, position && [`As of commit ${position}. `, back]);
  };
  const control = slider({
    id: "as-of",
    label: "As of",
    min: 0,
    max: STEPS,
    value: stepOf(at),
    describe: (step) =>
      timeOf(step) === ""
        ? h("strong", {}, context.query.get("position") ? "a commit" : "now")
        : [fullTime(timeOf(step)), " ", back],
    spoken: (step) => (timeOf(step) === "" ? "now" : `${relativeText(timeOf(step))}, ${utcText(timeOf(step))}`),
    settle: (step) => go(timeOf(step)),
    async step(by) {
      note.textContent = "";
      try {
        const time = await (by < 0 ? commitBefore(context, name, at) : commitBehind(context, name, at));
        if (time) go(time);
        else if (by > 0 && at) go("");
        else note.textContent = by < 0 ? "There is no earlier change." : "There is no later change.";
      } catch (error) {
        if (error?.name !== "AbortError") note.textContent = error.message;
      }
    },
  });
  const go = (time) => {
    at = time;
    context.replaceQuery({ at: time, position: "" });
    control.set(stepOf(time));
    tell();
    showList();
  };
  tell();
  const other = queryForm(context, {
    label: "As of another time",
    keep: ["prefix", "where", "fields", "deleted"],
    submit: "Go there",
    fields: [
      { name: "at", label: "or a time", type: "time", value: at && localText(at) },
      { name: "position", label: "or a commit", type: "number" },
    ],
  });
  return [h("div", { class: "as-of" }, control.element, other), positionNote, note];
}

const commitTime = (answer) => answer.entries?.[0]?.version.commitTime;

// What is shown now is as the last commit left it: the one before that is asked for.
async function commitBefore(context, collection, at) {
  const request = { collection, pageSize: 1, newestFirst: true };
  const before = at || commitTime(await context.call("DocumentService/Audit", request));
  return before && commitTime(await context.call("DocumentService/Audit", { ...request, endTime: before }));
}

async function commitBehind(context, collection, at) {
  if (!at) return undefined;
  return commitTime(await context.call("DocumentService/Audit", { collection, pageSize: 1, startTime: addMicroseconds(at, 1) }));
}
