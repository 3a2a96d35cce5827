// All collections, with how they lay out versions and how much they hold.
import { h, replace } from "../dom.js";
import { bytes, count, timeTag, word } from "../format.js";
import { collectionLink, each, heading, lateCell, laterCell, pagedTable } from "../parts.js";

export const strategyWord = (strategy) => word(strategy, "STRATEGY_");

export default {
  title: () => "Collections",
  render(context, root) {
    const late = [];
    replace(root, heading("Collections"));
    const list = pagedTable(context, {
      columns: [
        ["Collection", "c-name"],
        ["Documents", "c-number"],
        ["Versions", "c-number"],
        ["Stored", "c-number"],
        ["Strategy", ""],
        ["Made", "c-when"],
      ],
      caption: "Collections by name",
      noun: "collection",
      sizes: [50],
      empty: "There is no collection that you may read. The first write makes one.",
      cells({ name, strategy, options, createTime }) {
        const cells = [laterCell(), laterCell(), laterCell()];
        late.push([name, cells]);
        return [
          collectionLink(name),
          ...cells,
          strategyWord(strategy) + (options?.keyframeInterval ? `, a keyframe every ${options.keyframeInterval}` : ""),
          timeTag(createTime),
        ];
      },
      load: async (pageToken, pageSize) => {
        const answer = await context.call("CollectionService/ListCollections", { pageSize, pageToken });
        return { items: answer.collections ?? [], nextPageToken: answer.nextPageToken };
      },
      onLoaded() {
        each(late.splice(0), async ([name, [documents, versions, stored]]) => {
          let statistics = {};
          let failed = null;
          try {
            statistics = (await context.call("CollectionService/GetCollection", { name })).collection?.statistics ?? {};
          } catch (error) {
            failed = error;
          }
          lateCell(() => count(statistics.documents), documents, failed);
          lateCell(() => count(statistics.versions), versions, failed);
          lateCell(
            () => bytes((statistics.keyspaces ?? []).reduce((sum, keyspace) => sum + Number(keyspace.bytes ?? 0), 0)),
            stored,
            failed,
          );
        });
      },
    });
    root.append(
      list.element,
      h("p", { class: "hint" }, "Small counts and sizes are exact; beyond 1,000 they are the engine's estimates, right in order of magnitude."),
    );
  },
};
