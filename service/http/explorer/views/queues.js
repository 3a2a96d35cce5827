// All queues, with how much is in them.
import { h, replace, said } from "../dom.js";
import { count, duration } from "../format.js";
import { each, heading, lateCell, laterCell, none, pagedTable } from "../parts.js";
import { link } from "../router.js";

export default {
  title: () => "Queues",
  render(context, root) {
    const late = [];
    const states = ["ready", "scheduled", "reserved", "waiting", "dead"];
    const list = pagedTable(context, {
      columns: [
        ["Queue", "c-name"],
        ...states.map((state) => [state[0].toUpperCase() + state.slice(1), "c-number"]),
        ["Oldest ready", "c-number"],
        ["Consumed by", ""],
        ["Dead letters go to", ""],
      ],
      caption: "Queues by name",
      noun: "queue",
      sizes: [50],
      empty: "There is no queue that you may read. strata queue create makes one.",
      cells({ name, settings = {} }) {
        const cells = [...states, "oldest"].map(laterCell);
        late.push([name, cells]);
        return [
          [h("a", { href: link.queue(name) }, said(name)), settings.paused && [" ", h("span", { class: "tag warn" }, "paused")]],
          ...cells,
          settings.enrollments ? ["the server, into ", said(settings.enrollments.collection)] : "clients",
          settings.deadLetterQueue
            ? h("a", { href: link.queue(settings.deadLetterQueue) }, said(settings.deadLetterQueue))
            : none("stay here"),
        ];
      },
      load: async (pageToken, pageSize) => {
        const answer = await context.call("QueueService/ListQueues", { pageSize, pageToken });
        return { items: answer.queues ?? [], nextPageToken: answer.nextPageToken };
      },
      onLoaded() {
        each(late.splice(0), async ([name, cells]) => {
          let statistics = {};
          let failed = null;
          try {
            statistics = (await context.call("QueueService/GetQueue", { name })).queue?.statistics ?? {};
          } catch (error) {
            failed = error;
          }
          states.forEach((state, index) =>
            lateCell(
              () => {
                const number = Number(statistics[state] ?? 0);
                const words =
                  number > 0 ? h("a", { href: link.queue(name, { state }) }, count(number)) : h("span", { class: "mute" }, "0");
                return state === "dead" && number > 0 ? h("strong", { class: "warn" }, words) : words;
              },
              cells[index],
              failed,
            ),
          );
          lateCell(() => (statistics.oldestReadyAge ? duration(statistics.oldestReadyAge) : none()), cells.at(-1), failed);
        });
      },
    });
    replace(root, heading("Queues"), list.element);
  },
};
