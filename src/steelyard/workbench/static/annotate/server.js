// Requests to the workbench. An answer is {status, data}; status 0 means that nothing came back in time.

const LONGEST_WAIT_MS = 15000;

const tokenOfPage = () => document.querySelector('meta[name="csrf-token"]')?.content || "";

// Give tasks back when the page is closed: the browser sends this after the page is gone. Should it not, they expire.
export const giveBack = (unseen) => {
  const form = new URLSearchParams({ csrf: tokenOfPage() });
  for (const { assignment, until } of unseen) { form.append("assignment", assignment); form.append("until", until); }
  if (unseen.length) navigator.sendBeacon("/annotate/give-back", form);
};

export const send = async (path, { body, keepalive = false } = {}) => {
  const token = tokenOfPage();
  const headers = { accept: "application/json" };
  if (body !== undefined) Object.assign(headers, { "content-type": "application/json", "x-csrf-token": token });
  const init = { method: body === undefined ? "GET" : "POST", headers, body: body === undefined ? undefined : JSON.stringify(body), keepalive, redirect: "error", signal: AbortSignal.timeout(LONGEST_WAIT_MS) };
  try {
    const reply = await fetch(path, init);
    return { status: reply.status, data: await reply.json() };
  } catch {
    return { status: 0, data: null };
  }
};
