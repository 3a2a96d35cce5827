// Enrollments: what a student is enrolled in, with tombstones, and who is in a class, now or at a time.
import { h, replace, said } from "../dom.js";
import { count, localText, plural } from "../format.js";
import { documentLink, heading, none, pagedTable, queryForm, section, table } from "../parts.js";
import { link } from "../router.js";

const STUDENTS = "students";

export default {
  fits: (rest) => rest.length === 0 || (rest.length === 3 && ["students", "classes"].includes(rest[1])),
  title: ({ path }) =>
    path.length === 1 ? "Enrollments" : path[2] === "students" ? `Enrollments of ${path[3]}` : `Roster of ${path[3]}`,
  render(context, root) {
    const [, collection = STUDENTS, what, name] = context.path;
    if (what === undefined)
      replace(
        root,
        heading("Enrollments"),
        h("p", { class: "lead" }, "Look up a student, or a class."),
        lookUp(context, collection),
      );
    else if (what === "students") student(context, root, collection, name);
    else roster(context, root, collection, name);
  },
};

// The names lead to the path, and are no part of the query.
function lookUp(context, collection, { student: id = "", roster: name = "" } = {}) {
  const form = (label, submit, place, fields) =>
    queryForm(context, {
      label,
      submit,
      path: (query) => {
        const path = ["enrollments", query.collection || STUDENTS, place, query.name];
        delete query.collection;
        delete query.name;
        return path;
      },
      fields: [
        ...fields,
        { name: "collection", id: `${place}-collection`, label: "Collection", value: collection },
        { name: "set", id: `${place}-set`, label: "Set", placeholder: "classes" },
      ],
    });
  return h(
    "div",
    { class: "two-forms" },
    form("A student", "Enrollments", "students", [
      { name: "name", id: "students-name", label: "Student", value: id, required: true },
    ]),
    form("A class", "Roster", "classes", [
      { name: "name", id: "classes-name", label: "Class", value: name, required: true },
      {
        name: "at",
        id: "classes-at",
        label: "As of",
        type: "time",
        value: context.query.get("at") && localText(context.query.get("at")),
      },
    ]),
  );
}

function student(context, root, collection, id) {
  const set = context.query.get("set") ?? "";
  const body = section(context, async () => {
    const answer = await context.call("EnrollmentService/GetEnrollments", {
      collection,
      studentId: id,
      set,
      includeTombstones: true,
    });
    const all = answer.enrollments ?? [];
    const enrolled = all.filter((each) => each.enrolled);
    const tombstones = all.filter((each) => !each.enrolled);
    const show = (items, caption, empty) => {
      if (items.length === 0) return h("p", { class: "list-status" }, empty);
      const {
        element,
        body: rows,
        row,
      } = table(
        [
          ["Class", "c-name"],
          ["Sequence number", "c-number"],
        ],
        { caption },
      );
      rows.append(
        ...items.map(({ className, sequenceNumber }) =>
          row(
            h("a", { href: link.roster(collection, className, { set }) }, said(className)),
            sequenceNumber ? count(sequenceNumber) : none("older than the numbers"),
          ),
        ),
      );
      return element;
    };
    return [
      h(
        "p",
        { class: "hint" },
        answer.version && answer.version !== "0"
          ? [
              "As of version ",
              h("a", { href: link.document(collection, id, { version: answer.version }) }, `v${answer.version}`),
              " of ",
              documentLink(collection, id),
              ".",
            ]
          : "There is no document of this student.",
      ),
      h("h2", {}, `Enrolled in ${plural(enrolled.length, "class", "classes")}`),
      show(enrolled, "Enrolled", "In none."),
      h("h2", {}, `Unenrolled from ${plural(tombstones.length, "class", "classes")}`),
      h("p", { class: "hint" }, "Tombstones: they keep the number of the message that unenrolled, so that late messages have no effect."),
      show(tombstones, "Tombstones", "From none."),
    ];
  });
  replace(
    root,
    heading(said(id), {
      above: [h("a", { href: link.enrollments() }, "Enrollments"), " / student"],
      actions: [h("a", { href: link.document(collection, id) }, "Timeline")],
    }),
    body.element,
    h("h2", {}, "Look up another"),
    lookUp(context, collection, { student: id }),
  );
}

function roster(context, root, collection, className) {
  const set = context.query.get("set") ?? "";
  const at = context.query.get("at") ?? "";
  const list = pagedTable(context, {
    columns: [
      ["Student", "c-name"],
      ["Sequence number", "c-number"],
      ["Version", "c-number"],
    ],
    caption: `Students of ${className}`,
    noun: "student",
    sizes: [100, 1000],
    empty: at ? "No student was enrolled then." : "No student is enrolled.",
    cells: ({ studentId, sequenceNumber, version }) => [
      h("a", { href: link.student(collection, studentId, { set }), "data-row": true }, said(studentId)),
      sequenceNumber ? count(sequenceNumber) : none("older than the numbers"),
      h("a", { href: link.document(collection, studentId, { version }) }, `v${version}`),
    ],
    load: async (pageToken, pageSize) => {
      const answer = await context.call("EnrollmentService/ListRoster", {
        collection,
        className,
        set,
        pageSize,
        pageToken,
        atTime: at || undefined,
      });
      return { items: answer.students ?? [], nextPageToken: answer.nextPageToken, examined: answer.examined };
    },
  });
  replace(
    root,
    heading(said(className), { above: [h("a", { href: link.enrollments() }, "Enrollments"), " / class in ", said(collection)] }),
    at && h("p", { class: "hint" }, `As of ${localText(at)}.`),
    list.element,
    h("h2", {}, "Look up another"),
    lookUp(context, collection, { roster: className }),
  );
}
