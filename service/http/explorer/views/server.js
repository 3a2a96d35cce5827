// What the server is, and what it takes.
import { h, replace } from "../dom.js";
import { bytes, count, duration, fullTime } from "../format.js";
import { facts, heading, section } from "../parts.js";

export default {
  fits: (rest) => rest.length === 0,
  title: () => "Server",
  render(context, root) {
    const body = section(context, async () => {
      const info = await context.call("ServerService/GetServerInfo", {});
      const limits = info.limits ?? {};
      return [
        facts(
          [
            ["version", info.version || "unknown"],
            ["commit", info.commit ? h("code", {}, info.commit) : "unknown"],
            ["engine", info.engine || "unknown"],
            ["storage format", info.storageFormat ? count(info.storageFormat) : "keeps nothing"],
            ["up since", fullTime(info.startTime)],
            ["writes", info.writable ? "are taken" : h("strong", { class: "warn" }, "are refused at present")],
          ],
          "wide-facts",
        ),
        h("h2", {}, "Limits"),
        facts(
          [
            ["a document", bytes(limits.documentBytes)],
            ["levels of it", count(limits.documentDepth)],
            ["members and elements", count(limits.documentNodes)],
            ["a request", bytes(limits.messageBytes)],
            ["items of a page", count(limits.pageSize)],
            ["ids at once", count(limits.batchSize)],
            ["a call takes", duration(limits.deadline)],
          ],
          "wide-facts",
        ),
        h("h2", {}, "Services"),
        h(
          "ul",
          { class: "plain" },
          (info.services ?? []).map((name) => h("li", {}, h("code", {}, name))),
        ),
      ];
    });
    replace(root, heading("Server"), body.element);
  },
};
