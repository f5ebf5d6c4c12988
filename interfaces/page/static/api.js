// Calls to the server. Nothing is repeated: a failure is told to the caller, once.

const STORED = "dsh-memory-session";
let session = null;

export class ServerGone extends Error {}

export class Refused extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `HTTP ${status}`);
    this.status = status;
    this.error = body?.error ?? { code: `HTTP_${status}`, message: `HTTP ${status}`, hint: null };
    this.problems = body?.problems ?? null;
  }
}

async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (session !== null) headers["X-Dsh-Memory-Session"] = session;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  let answer;
  try {
    response = await fetch(`/api/${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      redirect: "error",
    });
    answer = await response.json();
  } catch (error) {
    if (response !== undefined && !response.ok) throw new Refused(response.status, null);
    throw new ServerGone(String(error));
  }
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);

// Trade the one-time token of the address for this tab's key; a reload finds the key again.
export async function openSession() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) {
    history.replaceState(null, "", location.pathname);
    const answer = await post("session", { token });
    session = answer.session;
    sessionStorage.setItem(STORED, session);
    return;
  }
  session = sessionStorage.getItem(STORED);
}
