// Two contents as rows to be shown side by side. Members stand in the order of the older side, additions after them; elements of lists are
// matched by what they are, so that a removed one does not change all after it.
import { Typed, keyOf } from "./bson.js";

// Beyond so many comparisons elements are matched by their places, but for those that are equal at both ends.
const MATCHES_MAX = 4_000_000;

const isContainer = (value) => value !== null && typeof value === "object" && !(value instanceof Typed);
const entriesOf = (value) => (Array.isArray(value) ? value.map((each, index) => [index, each]) : [...value]);

/**
 * The lines of a value: {depth, name, index, value, open, close}. A container opens with "{" or "[" and closes on a line of its own; an
 * empty one, and everything else, is one line.
 */
export function linesOf(value, depth = 0, name = null, lines = []) {
  if (!isContainer(value) || (value.size ?? value.length) === 0) {
    lines.push({ depth, name, value });
    return lines;
  }
  const list = Array.isArray(value);
  lines.push({ depth, name, open: list ? "[" : "{" });
  for (const [each, inner] of entriesOf(value)) linesOf(inner, depth + 1, each, lines);
  lines.push({ depth, name: null, close: list ? "]" : "}" });
  return lines;
}

// Which elements of two lists belong together: pairs of indices, one of them null where an element stands alone.
function matched(before, after) {
  const left = before.map(keyOf);
  const right = after.map(keyOf);
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left.at(-1 - end) === right.at(-1 - end)) end++;
  const n = left.length - start - end;
  const m = right.length - start - end;
  const pairs = Array.from({ length: start }, (_, i) => [i, i]);
  if (n * m <= MATCHES_MAX) {
    pairs.push(
      ...longestCommon(left.slice(start, start + n), right.slice(start, start + m)).map(([i, j]) => [
        i === null ? null : i + start,
        j === null ? null : j + start,
      ]),
    );
  } else {
    for (let i = 0; i < Math.max(n, m); i++) pairs.push([i < n ? i + start : null, i < m ? i + start : null]);
  }
  for (let i = 0; i < end; i++) pairs.push([left.length - end + i, right.length - end + i]);
  return together(pairs, before, after);
}

function longestCommon(left, right) {
  const [n, m] = [left.length, right.length];
  const lengths = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      lengths[i][j] = left[i] === right[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && left[i] === right[j]) pairs.push([i++, j++]);
    else if (j >= m || (i < n && lengths[i + 1][j] >= lengths[i][j + 1])) pairs.push([i++, null]);
    else pairs.push([null, j++]);
  }
  return pairs;
}

// An element taken out right where another came in is the same one, changed.
function together(pairs, before, after) {
  const result = [];
  for (let at = 0; at < pairs.length;) {
    const gone = [];
    const come = [];
    while (at < pairs.length && (pairs[at][0] === null || pairs[at][1] === null)) {
      if (pairs[at][1] === null) gone.push(pairs[at][0]);
      else come.push(pairs[at][1]);
      at++;
    }
    for (let i = 0; i < Math.max(gone.length, come.length); i++) result.push([gone[i] ?? null, come[i] ?? null]);
    if (at < pairs.length) result.push(pairs[at++]);
  }
  return result.map(([i, j]) => [i, j, i === null ? undefined : before[i], j === null ? undefined : after[j]]);
}

function childrenOf(before, after) {
  if (Array.isArray(before)) return matched(before, after);
  const children = [...before].map(([name, value]) => [name, name, value, after.get(name)]);
  for (const [name, value] of after) if (!before.has(name)) children.push([name, name, undefined, value]);
  return children;
}

/**
 * Rows {mark, left, right, path}: mark is "same", "added", "removed" or "changed"; left and right are lines or null; path is the JSON
 * Pointer of the member that a mark begins with.
 */
export function sideBySide(before, after) {
  const rows = [];
  const counts = { added: 0, removed: 0, changed: 0 };
  const pointer = (path, name) => `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  const alone = (value, depth, name, mark, path) => {
    counts[mark]++;
    linesOf(value, depth, name).forEach((line, index) => {
      rows.push({
        mark,
        left: mark === "removed" ? line : null,
        right: mark === "added" ? line : null,
        path: index === 0 ? path : null,
      });
    });
  };
  const walk = (left, right, depth, leftName, rightName, path) => {
    if (left === undefined) return alone(right, depth, rightName, "added", path);
    if (right === undefined) return alone(left, depth, leftName, "removed", path);
    if (keyOf(left) === keyOf(right)) {
      const [lines, others] = [linesOf(left, depth, leftName), linesOf(right, depth, rightName)];
      // Members may stand in another order, or have another width, which is no difference: the older side's order is shown on both.
      lines.forEach((line, index) =>
        rows.push({ mark: "same", left: line, right: index === 0 ? { ...line, name: others[0].name } : line, path: null }),
      );
      return undefined;
    }
    if (isContainer(left) && isContainer(right) && Array.isArray(left) === Array.isArray(right)) {
      const [open, close] = Array.isArray(left) ? "[]" : "{}";
      rows.push({ mark: "same", left: { depth, name: leftName, open }, right: { depth, name: rightName, open }, path: null });
      for (const [i, j, inner, other] of childrenOf(left, right)) walk(inner, other, depth + 1, i, j, pointer(path, j ?? i));
      rows.push({ mark: "same", left: { depth, name: null, close }, right: { depth, name: null, close }, path: null });
      return undefined;
    }
    counts.changed++;
    const [lines, others] = [linesOf(left, depth, leftName), linesOf(right, depth, rightName)];
    for (let index = 0; index < Math.max(lines.length, others.length); index++) {
      rows.push({ mark: "changed", left: lines[index] ?? null, right: others[index] ?? null, path: index === 0 ? path : null });
    }
    return undefined;
  };
  walk(before, after, 0, null, null, "");
  return { rows, counts };
}
