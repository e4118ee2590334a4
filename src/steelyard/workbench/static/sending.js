// Forms of alignment, review, settings and guidelines, sent so that nothing that was entered is lost: while the workbench is
// slow or away, after a session that ended while somebody typed, and on a second click. Without this script the browser
// sends them itself.

import { makeClock } from "./annotate/clock.js";

const LONGEST_WAIT_MS = 30000, MAY_PASS = [502, 503, 504, 507];

const note = document.querySelector("#sending");
let isSending = false;
const clock = makeClock(() => performance.now(), () => document.visibilityState === "visible");
for (const sign of ["pointermove", "keydown", "wheel", "scroll", "touchstart"]) addEventListener(sign, clock.touch, { passive: true, capture: true });
setInterval(clock.tick, 1000);
document.addEventListener("visibilitychange", clock.tick);

const say = (text) => {
  note.querySelector("span").textContent = text;
  note.querySelector("a").hidden = text !== note.dataset.loggedOut;
  note.hidden = false;
  note.scrollIntoView({ block: "nearest" });
};

const fieldsOf = (form, button) => {
  const fields = new URLSearchParams(new FormData(form));
  if (button?.name) fields.append(button.name, button.value);
  clock.tick();
  fields.set("seconds", clock.counted().toFixed(1));
  return fields;
};

const post = (form, fields) => fetch(form.action, { method: "POST", body: fields, signal: AbortSignal.timeout(LONGEST_WAIT_MS) });

const tokenOf = (text) => new DOMParser().parseFromString(text, "text/html").querySelector('meta[name="csrf-token"]')?.content;

// Who logged in again, in another tab, has another token: that of this page is refused once.
const takeNewToken = async (form) => {
  const token = tokenOf(await (await fetch(location.href)).text()), field = form.elements.csrf;
  if (!token || token === field.value) return false;
  field.value = token;
  return true;
};

const sent = async (form, button) => {
  const reply = await post(form, fieldsOf(form, button));
  return reply.status === 403 && await takeNewToken(form) ? post(form, fieldsOf(form, button)) : reply;
};

// Show what came back: the page that follows, a problem with the entries beside the entries, or a page that says why.
const show = async (reply) => {
  if (new URL(reply.url).pathname === "/login") return say(note.dataset.loggedOut);
  if (MAY_PASS.includes(reply.status)) return say(note.dataset.away);
  // The workbench has counted it, also with a form that it refused.
  clock.take();
  if (reply.ok) { location.assign(reply.url); return true; }
  const text = await reply.text();
  const problem = new DOMParser().parseFromString(text, "text/html").querySelector(".alert[role=alert]");
  if (reply.status === 400 && problem) return say(problem.textContent.trim());
  document.open();
  document.write(text);
  document.close();
  return true;
};

const submit = async (form, button) => {
  if (isSending) return;
  isSending = true;
  form.setAttribute("aria-busy", "true");
  let isLeaving = false;
  try { isLeaving = await show(await sent(form, button)); } catch { say(note.dataset.away); }
  if (isLeaving) return;
  isSending = false;
  form.removeAttribute("aria-busy");
};

// A form whose result is a page of its own (`data-page`) is sent by the browser, once somebody is logged in and the workbench
// answers: the page of a login, or of a failed connection, would take the place of what was entered.
const sendAsPage = async (form, button) => {
  if (isSending) return;
  isSending = true;
  try {
    const reply = await fetch("/account", { signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
    if (new URL(reply.url).pathname === "/login") say(note.dataset.loggedOut);
    else if (!reply.ok) say(note.dataset.away);
    else {
      form.elements.csrf.value = tokenOf(await reply.text());
      const step = Object.assign(document.createElement("input"), { type: "hidden", name: button?.name ?? "", value: button?.value ?? "" });
      form.append(step);
      form.submit();
      step.remove();
      // Until the page that follows is there a second click sends nothing.
      return;
    }
  } catch { say(note.dataset.away); }
  isSending = false;
};
addEventListener("pageshow", ({ persisted }) => { if (persisted) isSending = false; });

for (const form of document.querySelectorAll('main form[method="post"]')) {
  form.addEventListener("submit", (event) => { event.preventDefault(); (form.hasAttribute("data-page") ? sendAsPage : submit)(form, event.submitter); });
}
