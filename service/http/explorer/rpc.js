// Strata's public RPCs over Connect's JSON protocol: unary calls and server streams, errors with reason and metadata, and the caller's
// token, which is kept in this module's memory and nowhere else.

/** Why a call failed. `code` is Connect's ("not_found"), `reason` one of error_reason.proto, `unreachable` that nobody answered. */
export class RpcError extends Error {
  constructor({ method, code, message, reason = "", metadata = {}, retryDelayMs = null, unreachable = false }) {
    super(message);
    this.name = "RpcError";
    Object.assign(this, { method, code, reason, metadata, retryDelayMs, unreachable });
  }
}

// The server itself ends a call after 30 s unless it is told otherwise; what takes so much longer has lost its connection.
const PATIENCE_MS = 60_000;

let token = null;
let askForToken = null;
let asking = null;
const listeners = new Set();

export const hasToken = () => token !== null;
export function forgetToken() {
  token = null;
}

/** `ask(error)` shows the form and promises a token, or null if there is none to be had. */
export function onUnauthenticated(ask) {
  askForToken = ask;
}

/** `listener(error)` is told of each answer: null, or why there was none. */
export function onAnswer(listener) {
  listeners.add(listener);
}
const tell = (error) => listeners.forEach((listener) => listener(error));

// Several calls may be refused at once: one form serves all of them.
async function newToken(error) {
  asking ??= Promise.resolve(askForToken?.(error) ?? null).finally(() => (asking = null));
  const given = await asking;
  if (given === null) return false;
  token = given;
  return true;
}

function headersFor(contentType) {
  const headers = { "content-type": contentType, "connect-protocol-version": "1" };
  if (token !== null) headers.authorization = `Bearer ${token}`;
  return headers;
}

async function post(method, contentType, body, signal) {
  try {
    // Relative, so that the page also works below a path of somebody's proxy.
    return await fetch(`strata.v1.${method}`, {
      method: "POST",
      headers: headersFor(contentType),
      body,
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    throw failure(method, error, signal);
  }
}

// What fetch throws says little: either we gave up ourselves, or there was no answer.
function failure(method, error, signal) {
  if (error instanceof RpcError) return error;
  if (signal?.aborted && signal.reason?.name !== "TimeoutError") return signal.reason;
  const late = signal?.aborted;
  return new RpcError({
    method,
    code: late ? "deadline_exceeded" : "unavailable",
    unreachable: true,
    message: late ? `no answer within ${PATIENCE_MS / 1000} s` : "the server does not answer",
  });
}

function errorOf(method, body, status) {
  let reason = "";
  let metadata = {};
  let retryDelayMs = null;
  for (const { type, debug } of body?.details ?? []) {
    if (type === "google.rpc.ErrorInfo" && debug) {
      reason = debug.reason ?? "";
      metadata = debug.metadata ?? {};
    } else if (type === "google.rpc.RetryInfo" && debug?.retryDelay) {
      retryDelayMs = Number.parseFloat(debug.retryDelay) * 1000;
    }
  }
  const code = body?.code ?? { 401: "unauthenticated", 403: "permission_denied", 404: "unimplemented" }[status] ?? "unknown";
  // A proxy in between answers so when the server behind it is gone.
  const unreachable = code === "unavailable" || (!body?.code && [502, 503, 504].includes(status));
  return new RpcError({
    method,
    code: unreachable ? "unavailable" : code,
    message: body?.message || `the server answered with HTTP status ${status}`,
    reason,
    metadata,
    retryDelayMs,
    unreachable,
  });
}

async function bodyOf(response) {
  try {
    return JSON.parse(await response.text());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

// Repeats what `once` does while new tokens are to be had.
async function authenticated(once) {
  for (;;) {
    try {
      return await once();
    } catch (error) {
      if (!(error instanceof RpcError) || error.code !== "unauthenticated" || !(await newToken(error))) throw error;
    }
  }
}

function withPatience(signal) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new DOMException("no answer", "TimeoutError")), PATIENCE_MS);
  const follow = () => controller.abort(signal.reason);
  if (signal?.aborted) follow();
  signal?.addEventListener("abort", follow, { once: true });
  return { signal: controller.signal, end: () => (clearTimeout(timer), signal?.removeEventListener("abort", follow)) };
}

/** One call, such as `call("DocumentService/Get", {collection, id})`: its answer, or an RpcError. `quiet`: no form for a token. */
export async function call(method, request = {}, { signal, quiet = false } = {}) {
  const once = async () => {
    const patience = withPatience(signal);
    try {
      const response = await post(method, "application/json", JSON.stringify(request), patience.signal);
      const body = await bodyOf(response);
      if (!response.ok) throw errorOf(method, body, response.status);
      if (body === null)
        throw new RpcError({ method, code: "unknown", message: "the answer is no JSON: is this Strata's own address?" });
      return body;
    } catch (error) {
      throw failure(method, error, patience.signal);
    } finally {
      patience.end();
    }
  };
  try {
    const answer = await (quiet ? once() : authenticated(once));
    tell(null);
    return answer;
  } catch (error) {
    if (error instanceof RpcError) tell(error);
    throw error;
  }
}

function envelope(text) {
  const bytes = new TextEncoder().encode(text);
  const whole = new Uint8Array(5 + bytes.length);
  new DataView(whole.buffer).setUint32(1, bytes.length);
  whole.set(bytes, 5);
  return whole;
}

// The envelopes of a body: a byte of flags, four of length (big endian), and as many of content.
async function* envelopes(reader) {
  const parts = [];
  let held = 0;
  let wanted = 5;
  for (;;) {
    while (held >= wanted) {
      const all = joined(parts, held);
      const length = new DataView(all.buffer, all.byteOffset).getUint32(1);
      if (held < 5 + length) {
        parts.splice(0, parts.length, all);
        wanted = 5 + length;
        break;
      }
      yield { flags: all[0], text: new TextDecoder().decode(all.subarray(5, 5 + length)) };
      parts.splice(0, parts.length, all.subarray(5 + length));
      held -= 5 + length;
      wanted = 5;
    }
    const { done, value } = await reader.read();
    if (done) return;
    parts.push(value);
    held += value.length;
  }
}

function joined(parts, length) {
  if (parts.length === 1) return parts[0];
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A server stream: its messages as they come. Ends when the server ends it, with an RpcError if it says why or breaks off. */
export async function* stream(method, request = {}, { signal } = {}) {
  const open = async () => {
    const response = await post(method, "application/connect+json", envelope(JSON.stringify(request)), signal);
    if (!response.ok) throw errorOf(method, await bodyOf(response), response.status);
    const reader = response.body.getReader();
    const messages = envelopes(reader);
    // The first envelope may already be a refusal, which a token would mend.
    const first = await messages.next();
    if (!first.done && first.value.flags & 2) {
      const end = JSON.parse(first.value.text);
      if (end.error) throw errorOf(method, end.error, 200);
    }
    return { reader, messages, first };
  };
  let reader = null;
  try {
    const opened = await authenticated(open);
    reader = opened.reader;
    tell(null);
    for (let next = opened.first; !next.done; next = await opened.messages.next()) {
      if (next.value.flags & 2) {
        const end = JSON.parse(next.value.text);
        if (end.error) throw errorOf(method, end.error, 200);
        return;
      }
      yield JSON.parse(next.value.text);
    }
    throw new RpcError({ method, code: "unavailable", message: "the stream broke off", unreachable: true });
  } catch (error) {
    const said = failure(method, error, signal);
    if (said instanceof RpcError) tell(said);
    throw said;
  } finally {
    await reader?.cancel().catch(() => {});
  }
}
