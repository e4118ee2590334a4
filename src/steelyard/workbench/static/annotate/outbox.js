// Answers on their way to the workbench. They lie in the browser's storage until the workbench has them: through a closed
// laptop, a reload, and hours without a connection. One that is sent twice is stored once.

const FIRST_WAIT_MS = 1000, LONGEST_WAIT_MS = 30000, MOST_DONE = 50;

// Values of this page in the browser's storage; in memory where the browser keeps nothing.
export const makeStore = (storage) => {
  const memory = new Map();
  return {
    get: (key) => {
      try { return JSON.parse(storage.getItem(key)) ?? memory.get(key) ?? null; } catch { return memory.get(key) ?? null; }
    },
    set: (key, value) => {
      try { storage.setItem(key, JSON.stringify(value)); memory.delete(key); return true; } catch { memory.set(key, value); return false; }
    },
    remove: (key) => {
      memory.delete(key);
      try { storage.removeItem(key); } catch { /* nothing is stored there */ }
    },
  };
};

// Why a request that may succeed later did not: 507 is a full disk.
export const problemOf = (status) => status === 401 || status === 403 ? "logged out" : status === 507 ? "no room" : "offline";

// `send(path, {body})` gives {status, data}; `later(run, ms)` runs something later; `onChange(state)` hears of every change.
export const makeOutbox = ({ store, person, send, later, onChange }) => {
  const key = `steelyard-outbox-${person}`, doneKey = `steelyard-done-${person}`;
  const entries = () => store.get(key) || [];
  const state = { isSending: false, wait: FIRST_WAIT_MS, problem: null, refused: [], isScheduled: false };
  const report = () => onChange({ waiting: entries().length, problem: state.problem, refused: state.refused });

  const remove = (assignment) => store.set(key, entries().filter((entry) => entry.assignment !== assignment));
  const pathOf = (entry) => `/annotate/${entry.assignment}/answer?seconds=${Math.max(0, entry.seconds).toFixed(1)}${entry.guideline === null ? "" : `&guideline=${entry.guideline}`}`;

  // Forget that an answer was given here: its task is shown again where the workbench gives it to this person again.
  const reopen = (assignment) => store.set(doneKey, (store.get(doneKey) || []).filter((each) => each !== assignment));

  // Send the oldest answer. Returns whether the next one may follow at once.
  const sendFirst = async (entry) => {
    const { status, data } = await send(pathOf(entry), { body: entry.answer });
    if (status >= 200 && status < 300) {
      state.problem = null;
      if (data.outcome === "too late") {
        state.refused.push({ assignment: entry.assignment, reason: "too late" });
        reopen(entry.assignment);
      }
      remove(entry.assignment);
      return true;
    }
    if ([400, 404, 413, 422].includes(status)) {
      // Sending it again cannot help: the person hears of it, and the task comes back if it is still open.
      state.refused.push({ assignment: entry.assignment, reason: data?.error || "" });
      reopen(entry.assignment);
      remove(entry.assignment);
      return true;
    }
    state.problem = problemOf(status);
    return false;
  };

  const flush = async () => {
    if (state.isSending) return;
    state.isSending = true;
    let isGoing = true;
    while (isGoing && entries().length) isGoing = await sendFirst(entries()[0]);
    state.isSending = false;
    if (isGoing) {
      state.wait = FIRST_WAIT_MS;
    } else if (!state.isScheduled) {
      state.isScheduled = true;
      later(() => { state.isScheduled = false; flush(); }, state.wait);
      state.wait = Math.min(2 * state.wait, LONGEST_WAIT_MS);
    }
    report();
  };

  return {
    put: (entry) => {
      if (!entries().some((each) => each.assignment === entry.assignment)) store.set(key, [...entries(), entry]);
      store.set(doneKey, [...(store.get(doneKey) || []), entry.assignment].slice(-MOST_DONE));
      report();
    },
    flush,
    retry: () => { state.wait = FIRST_WAIT_MS; return flush(); },
    size: () => entries().length,
    // Whether an answer to this assignment was given here, sent or not.
    isDone: (assignment) => entries().some((entry) => entry.assignment === assignment) || (store.get(doneKey) || []).includes(assignment),
    forgive: () => { state.refused = []; report(); },
  };
};

const DRAFT_WAIT_MS = 700, MOST_UNSENT_SECONDS = 45;
// The workbench does not take such a draft, however often it is sent: the task is somebody else's, or answered.
const DRAFT_REFUSED = [400, 404, 409, 413, 422];

// Drafts: in the browser's storage at once, at the workbench within a second, one request after the other. One that does
// not arrive is sent again until it does. Without `send` they stay in the browser. `onChange(state)` hears of every change.
export const makeDrafts = ({ store, person, send, later, clock, onChange = () => {} }) => {
  const keyOf = (assignment) => `steelyard-draft-${person}-${assignment}`;
  let pending = null, isSending = false, isScheduled = false, wait = FIRST_WAIT_MS;
  const flush = async () => {
    if (!pending || isSending) return;
    const sent = pending, { assignment, answer } = sent, seconds = clock.take();
    pending = null;
    isSending = true;
    const { status } = await send(`/annotate/${assignment}/draft?seconds=${seconds.toFixed(1)}`, { body: answer, keepalive: true });
    isSending = false;
    if (status === 0) clock.give(seconds);
    const isStored = status >= 200 && status < 300;
    if (isStored && JSON.stringify(store.get(keyOf(assignment))) === JSON.stringify(answer)) store.remove(keyOf(assignment));
    if (isStored || DRAFT_REFUSED.includes(status)) {
      wait = FIRST_WAIT_MS;
      if (!pending) onChange({ isWaiting: false, isStored, problem: null });
      else schedule(DRAFT_WAIT_MS);
      return;
    }
    // What was entered since, or forgotten because the answer is sent, comes before it.
    if (!pending && store.get(keyOf(assignment))) pending = sent;
    onChange({ isWaiting: pending !== null, isStored: false, problem: pending && problemOf(status) });
    schedule(wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  };
  const schedule = (after) => {
    if (isScheduled || !pending) return;
    isScheduled = true;
    later(() => { isScheduled = false; flush(); }, after);
  };
  const save = (assignment, answer) => {
    store.set(keyOf(assignment), answer);
    if (!send) return;
    pending = { assignment, answer };
    onChange({ isWaiting: true, isStored: false, problem: null });
    schedule(DRAFT_WAIT_MS);
  };
  return {
    save,
    // Report the time of somebody who reads: the workbench takes what lies two minutes back for a pause.
    beat: (assignment, answer) => { if (clock.counted() > MOST_UNSENT_SECONDS) save(assignment, answer); },
    // What was entered here and never reached the workbench.
    unsent: (assignment) => store.get(keyOf(assignment)),
    forget: (assignment) => {
      store.remove(keyOf(assignment));
      if (pending?.assignment === assignment) pending = null;
      onChange({ isWaiting: pending !== null, isStored: false, problem: null });
    },
    flush,
  };
};
