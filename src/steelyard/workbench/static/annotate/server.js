// Requests to the workbench. An answer is {status, data}; status 0 means that nothing came back in time.

const LONGEST_WAIT_MS = 15000, MOST_KEPT_ALIVE_BYTES = 60000;

const tokenOfPage = () => document.querySelector('meta[name="csrf-token"]')?.content || "";

// Give tasks back when the page is closed: the browser sends this after the page is gone. Should it not, they expire.
export const giveBack = (unseen) => {
  const form = new URLSearchParams({ csrf: tokenOfPage() });
  for (const { assignment, until } of unseen) { form.append("assignment", assignment); form.append("until", until); }
  if (unseen.length) navigator.sendBeacon("/annotate/give-back", form);
};

const personOf = (page) => JSON.parse(page.querySelector("#annotator")?.dataset.setup ?? "{}").person;

// Whoever logged in again, in another tab, has another token: that of this page is refused. Returns whether there is one.
// What one person entered is never sent as that of another, who has logged in at the same browser.
const takeNewToken = async () => {
  const place = document.querySelector('meta[name="csrf-token"]'), before = place.content;
  const page = new DOMParser().parseFromString(await (await fetch(location.href, { signal: AbortSignal.timeout(LONGEST_WAIT_MS) })).text(), "text/html");
  place.content = personOf(page) === personOf(document) && page.querySelector('meta[name="csrf-token"]')?.content || before;
  return place.content !== before;
};

const request = (path, text, keepalive) => {
  const headers = { accept: "application/json" };
  if (text !== undefined) Object.assign(headers, { "content-type": "application/json", "x-csrf-token": tokenOfPage() });
  return fetch(path, { method: text === undefined ? "GET" : "POST", headers, body: text, keepalive, redirect: "error", signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
};

export const send = async (path, { body, keepalive = false } = {}) => {
  const text = body === undefined ? undefined : JSON.stringify(body);
  // A browser sends no large text once the page is gone, and would refuse it now: a character has 3 bytes at most.
  const isKeptAlive = keepalive && 3 * text.length <= MOST_KEPT_ALIVE_BYTES;
  try {
    let reply = await request(path, text, isKeptAlive);
    if (reply.status === 403 && text !== undefined && await takeNewToken()) reply = await request(path, text, isKeptAlive);
    return { status: reply.status, data: await reply.json() };
  } catch {
    return { status: 0, data: null };
  }
};
