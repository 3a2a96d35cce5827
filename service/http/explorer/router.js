// Which view a URL names, and the way back: `#/collections/books?prefix=a` has the path ["collections", "books"] and the query
// {prefix: "a"}.

/** The hash of a path and a query. Of the query, what is empty is left out. */
export function urlOf(path, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "" && each !== false)
        search.append(name, each === true ? "1" : String(each));
    }
  }
  const text = search.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** The path and the query of a hash; null if it is none of ours (the skip link's), or damaged. */
export function parse(hash) {
  if (hash === "" || hash === "#" || hash === "#/") return { path: ["recent"], query: new URLSearchParams() };
  if (!hash.startsWith("#/")) return null;
  const question = hash.indexOf("?");
  const path = question < 0 ? hash.slice(2) : hash.slice(2, question);
  try {
    return {
      path: path.split("/").map(decodeURIComponent),
      query: new URLSearchParams(question < 0 ? "" : hash.slice(question + 1)),
    };
  } catch {
    return null;
  }
}

/** What other places are called. */
export const link = {
  recent: () => urlOf(["recent"]),
  collections: () => urlOf(["collections"]),
  collection: (name, query) => urlOf(["collections", name], query),
  document: (collection, id, query) => urlOf(["documents", collection, id], query),
  audit: (query) => urlOf(["audit"], query),
  enrollments: (query) => urlOf(["enrollments"], query),
  student: (collection, student, query) => urlOf(["enrollments", collection, "students", student], query),
  roster: (collection, name, query) => urlOf(["enrollments", collection, "classes", name], query),
  verify: (collection, query) => urlOf(collection ? ["verify", collection] : ["verify"], query),
  feed: (query) => urlOf(["feed"], query),
  subscriptions: (query) => urlOf(["subscriptions"], query),
  subscription: (name, query) => urlOf(["subscriptions", name], query),
  queues: () => urlOf(["queues"]),
  queue: (name, query) => urlOf(["queues", name], query),
  message: (queue, id) => urlOf(["queues", queue, "messages", id]),
  transactions: (query) => urlOf(["transactions"], query),
  transaction: (id) => urlOf(["transactions", id]),
  leases: (query) => urlOf(["leases"], query),
  server: () => urlOf(["server"]),
};

/** Where the jump box leads. */
export function destination(text) {
  const words = text.trim();
  const marked = /^(actor|request|transaction|queue|subscription|lease):\s*(.+)$/.exec(words);
  if (marked) {
    const [, kind, name] = marked;
    switch (kind) {
      case "actor":
        return link.audit({ actor: name });
      case "request":
        return link.audit({ request_id: name });
      case "transaction":
        return link.transaction(name);
      case "queue":
        return link.queue(name);
      case "subscription":
        return link.subscription(name);
      default:
        return link.leases({ prefix: name });
    }
  }
  const slash = words.indexOf("/");
  if (slash <= 0) return link.collection(words);
  return slash === words.length - 1
    ? link.collection(words.slice(0, slash))
    : link.document(words.slice(0, slash), words.slice(slash + 1));
}
