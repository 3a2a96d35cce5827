// The slider over a history: one for steps of versions and of times alike, with buttons to the change before and after, and the time
// it stands at.
import { h, replace } from "./dom.js";

const SETTLE_MS = 150;

/**
 * `{label, min, max, value}` of whole numbers; `describe(value)` answers the nodes that say where it stands, `spoken(value)` the same as
 * text; `settle(value)` is called once it has stood still for a moment; `step(-1 or 1)` by the buttons, if given.
 */
export function slider({ id, label, min, max, value, describe, spoken, settle, step }) {
  const where = h("output", { class: "slider-where", for: id });
  const range = h("input", { id, type: "range", min, max, step: 1, value, "aria-label": label });
  let timer = 0;
  const show = () => {
    replace(where, describe(Number(range.value)));
    range.setAttribute("aria-valuetext", spoken(Number(range.value)));
  };
  range.addEventListener("input", () => {
    show();
    clearTimeout(timer);
    timer = setTimeout(() => settle(Number(range.value)), SETTLE_MS);
  });
  const button = (by, text, words) =>
    h(
      "button",
      {
        type: "button",
        class: "step",
        "aria-label": words,
        title: words,
        [by < 0 ? "data-earlier" : "data-later"]: true,
        onclick: () => step(by),
      },
      text,
    );
  const element = h(
    "div",
    { class: "slider" },
    h("label", { for: id, class: "slider-label" }, label),
    h(
      "div",
      { class: "slider-row" },
      step && button(-1, "‹", "One change earlier"),
      range,
      step && button(1, "›", "One change later"),
    ),
    where,
  );
  show();
  return {
    element,
    range,
    show,
    /** Moves it without settling. */
    set(next) {
      range.value = String(next);
      show();
    },
  };
}
