// Makes elements. What comes from the server enters the page here, as text nodes and nothing else: no markup is ever parsed.

/**
 * An element with attributes, listeners (`onclick`, ...) and children. Children are nodes, strings, numbers, or lists of them; null,
 * undefined and false are left out. An attribute that is null, undefined or false is left out; true sets it empty.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = true;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of Array.isArray(children) ? children : [children]) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Text for screen readers alone. */
export const hidden = (text) => h("span", { class: "hidden" }, text);

/** Text of users: kept apart from what stands around it, also where it is written from right to left or tries to turn its neighbours. */
export const said = (text, className = "") => h("bdi", { class: `said ${className}` }, text);

/** Says something to whoever does not see it. */
export function announce(text) {
  const announcer = document.getElementById("announcer");
  if (announcer.textContent !== text) announcer.textContent = text;
}
