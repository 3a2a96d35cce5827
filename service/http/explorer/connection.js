// Whether the server answers. When it stops, a banner says so and the server is asked again, less and less often, until it is back; then
// whatever waits for it goes on by itself.
import { announce, h, replace } from "./dom.js";
import { call, onAnswer } from "./rpc.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
// How often it is looked whether the server is still there while nothing is asked of it.
const IDLE_LOOK_MS = 15_000;

let down = null;
const waiting = new Set();

/** Calls `resume` once, when the server is back; the answer forgets it. */
export function whenBack(resume, signal) {
  waiting.add(resume);
  const forget = () => waiting.delete(resume);
  signal?.addEventListener("abort", forget, { once: true });
  return forget;
}

/** Tells `onServer` the server's own words on itself, now and each time that it is found anew; answers what looks once more. */
export function startWatching(onServer) {
  onAnswer((error) => {
    if (error?.unreachable) wentDown(error, onServer);
    else if (down) cameBack(onServer);
  });
  const look = async () => {
    try {
      onServer(await call("ServerService/GetServerInfo", {}, { quiet: true }));
    } catch {
      // Told already: by the banner, or by whatever view was refused.
    }
  };
  setInterval(() => {
    if (!down && !document.hidden) look();
  }, IDLE_LOOK_MS);
  look();
  return look;
}

function wentDown(error, onServer) {
  if (down) return;
  down = { since: Date.now(), wait: FIRST_WAIT_MS, timer: null, error };
  schedule(onServer);
}

function schedule(onServer) {
  const state = down;
  state.next = Date.now() + state.wait;
  const tick = () => {
    if (down !== state) return;
    const left = Math.max(0, Math.ceil((state.next - Date.now()) / 1000));
    show(state, left, () => probe(state, onServer));
    if (Date.now() >= state.next) probe(state, onServer);
    else state.timer = setTimeout(tick, Math.min(1000, state.next - Date.now()));
  };
  tick();
}

async function probe(state, onServer) {
  clearTimeout(state.timer);
  try {
    await call("ServerService/GetServerInfo", {}, { quiet: true });
  } catch {
    // One that refuses the call is there all the same, and has been found so by onAnswer.
    if (down !== state) return;
    state.wait = Math.min(LONGEST_WAIT_MS, state.wait * 2);
    schedule(onServer);
  }
}

function show(state, left, now) {
  const banner = document.getElementById("banner");
  const wait = banner.querySelector(".wait");
  const words = left > 0 ? `Trying again in ${left} s.` : "Trying again …";
  if (wait) {
    // Counting down is not read out again and again: the banner is an alert.
    wait.textContent = words;
    return;
  }
  replace(
    banner,
    h("strong", {}, "The server does not answer. "),
    `${state.error.reason === "DRAINING" ? "It is shutting down. " : ""}The page may show old data. `,
    h("span", { class: "wait", "aria-hidden": "true" }, words),
    " ",
    h("button", { type: "button", onclick: now }, "Try now"),
  );
  banner.classList.add("shown");
}

async function cameBack(onServer) {
  clearTimeout(down.timer);
  down = null;
  const banner = document.getElementById("banner");
  banner.classList.remove("shown");
  replace(banner);
  announce("The server answers again.");
  const resumed = [...waiting];
  waiting.clear();
  for (const resume of resumed) resume();
  try {
    onServer(await call("ServerService/GetServerInfo", {}, { quiet: true }));
  } catch {
    // As above.
  }
}
