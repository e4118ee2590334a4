// Answers on their way to the workbench. They stay in the browser until the workbench has them: through a closed laptop, a
// killed browser, and hours without a connection, in several windows at once. One that is sent twice is stored once.

const FIRST_WAIT_MS = 1000, LONGEST_WAIT_MS = 30000, MOST_DONE = 50;

// Why a request that may succeed later did not: 507 is a full disk.
export const problemOf = (status) => status === 401 || status === 403 ? "logged out" : status === 507 ? "no room" : "offline";
// Sending it again cannot help: the person hears of it, and the task comes back if it is still open.
const REFUSED = [400, 404, 413, 422];
// The other answers fare no better: there is no connection, no session, or no room.
const isOfAll = (status) => status === 0 || [401, 403, 502, 503, 504, 507].includes(status);

const isAnswer = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isEntry = (value) => isAnswer(value) && Number.isInteger(value.assignment) && isAnswer(value.answer);
const isSame = (first, second) => JSON.stringify(first) === JSON.stringify(second);

// `send(path, {body})` gives {status, data}; `later(run, ms)` runs something later; `alone(run)` runs it in one window at a
// time; `onChange(state)` hears of every change. `person` names a person of one workbench, `former` as versions before did.
export const makeOutbox = ({ store, person, former = person, send, later, onChange, alone = (run) => run(), now = Date.now }) => {
  const listKey = `steelyard-outbox-${former}`, prefix = `steelyard-outbox-${person}-`, donePrefix = `steelyard-done-${person}-`;
  const state = { isSending: false, wait: FIRST_WAIT_MS, problem: null, refused: [], isScheduled: false };
  const keyOf = (assignment) => `${prefix}${assignment}`;
  const keys = () => store.keys(prefix).filter((key) => isEntry(store.get(key)));
  const entries = () => keys().map((key) => store.get(key)).sort((first, second) => (first.at ?? 0) - (second.at ?? 0) || first.assignment - second.assignment);
  const report = () => {
    const waiting = keys();
    onChange({ waiting: waiting.length, problem: state.problem, refused: state.refused, isKept: waiting.every(store.isKept) });
  };
  const refuse = (assignment, reason) => { state.refused = [...state.refused, { assignment, reason }]; };

  // Versions before this one kept all answers of a person in one list, the numbers of the last ones in another, and drafts
  // without the name of the workbench.
  const takeOverFormer = () => {
    const list = store.get(listKey);
    for (const entry of Array.isArray(list) ? list.filter(isEntry) : []) if (!isEntry(store.get(keyOf(entry.assignment)))) store.set(keyOf(entry.assignment), { ...entry, at: 0 });
    if (Array.isArray(list) && list.every(isEntry)) store.remove(listKey);
    store.persist();
    store.remove(`steelyard-done-${former}`);
    const draftPrefix = `steelyard-draft-${former}-`;
    for (const key of former === person ? [] : store.keys(draftPrefix).filter((each) => /^-?\d+$/.test(each.slice(draftPrefix.length)))) {
      const current = `steelyard-draft-${person}-${key.slice(draftPrefix.length)}`;
      if (!isAnswer(store.get(key))) continue;
      if (store.get(current) === null) store.set(current, store.get(key));
      store.remove(key);
    }
  };
  // An answer that cannot be read is not sent. It is put aside and said: its task comes back.
  const putAside = () => {
    for (const key of [...store.keys(prefix), ...store.keys(listKey).filter((each) => each === listKey)].filter((each) => !isEntry(store.get(each)))) {
      refuse(Number(key.split("-").at(-1)) || null, "unreadable");
      store.set(key.replace("outbox", "unreadable"), store.raw(key) ?? store.get(key));
      store.remove(key);
    }
  };

  // Remember that an answer is stored: tasks that were asked for before may still name its task.
  const finish = (assignment) => {
    store.set(`${donePrefix}${assignment}`, now());
    const done = store.keys(donePrefix).sort((first, second) => store.get(second) - store.get(first));
    done.slice(MOST_DONE).forEach(store.remove);
    store.remove(keyOf(assignment));
  };
  const dropUncounted = (assignment, reason) => {
    refuse(assignment, reason);
    store.remove(`${donePrefix}${assignment}`);
    store.remove(keyOf(assignment));
  };

  const pathOf = ({ assignment, seconds, guideline }) => `/annotate/${assignment}/answer?seconds=${Math.max(0, Number(seconds) || 0).toFixed(1)}${Number.isInteger(guideline) ? `&guideline=${guideline}` : ""}`;
  // Send an answer. Returns the problem that it has; null where it is settled.
  const sendOne = async (entry) => {
    const { status, data } = await send(pathOf(entry), { body: entry.answer });
    if (status >= 200 && status < 300) {
      if (data?.outcome === "too late") dropUncounted(entry.assignment, "too late"); else finish(entry.assignment);
      return null;
    }
    if (!REFUSED.includes(status)) return status;
    dropUncounted(entry.assignment, data?.error || "");
    return null;
  };
  // Send all answers, the oldest first. One that the workbench fails at does not keep the others.
  const sendAll = async () => {
    const failed = new Set();
    let entry, problem = null;
    while ((entry = entries().find(({ assignment }) => !failed.has(assignment)))) {
      const status = await sendOne(entry);
      if (status === null) { report(); continue; }
      problem = problemOf(status);
      failed.add(entry.assignment);
      if (isOfAll(status)) break;
    }
    return problem;
  };

  const flush = async () => {
    if (state.isSending) return;
    state.isSending = true;
    store.persist();
    try { state.problem = keys().length ? await alone(sendAll) : null; } finally { state.isSending = false; }
    if (state.problem === null) {
      state.wait = FIRST_WAIT_MS;
    } else if (!state.isScheduled) {
      state.isScheduled = true;
      later(() => { state.isScheduled = false; flush(); }, state.wait);
      state.wait = Math.min(2 * state.wait, LONGEST_WAIT_MS);
    }
    report();
  };

  return {
    // Take over what an earlier version, or another window, left: before anything is sent.
    open: () => { takeOverFormer(); putAside(); report(); },
    put: (entry) => {
      const before = store.get(keyOf(entry.assignment));
      // Of two windows with the same task, the answer of the first one counts.
      if (!isEntry(before)) store.set(keyOf(entry.assignment), { ...entry, at: now() });
      else if (!isSame(before.answer, entry.answer)) refuse(entry.assignment, "elsewhere");
      report();
    },
    flush, report,
    retry: () => { state.wait = FIRST_WAIT_MS; return flush(); },
    size: () => keys().length,
    isKept: () => keys().every(store.isKept),
    // Whether an answer to this assignment waits here, or was stored after a time: the workbench may not have known of it.
    isDone: (assignment, since) => isEntry(store.get(keyOf(assignment))) || (store.get(`${donePrefix}${assignment}`) ?? -1) >= since,
    forgive: () => { state.refused = []; report(); },
  };
};

const DRAFT_WAIT_MS = 700, MOST_UNSENT_SECONDS = 45;
// The workbench does not take such a draft, however often it is sent.
const DRAFT_REFUSED = [400, 404, 409, 413, 422];

// Drafts: in the browser at once, at the workbench within a second, one request after the other. One that does not arrive is
// sent again until it does. Without `send` they stay in the browser. `onChange(state)` hears of every change, and
// `onOutcome(assignment, outcome)` whether the task is still this person's: it is while the outcome is `open`.
export const makeDrafts = ({ store, person, send, later, clock, onChange = () => {}, onOutcome = () => {} }) => {
  const keyOf = (assignment) => `steelyard-draft-${person}-${assignment}`;
  let pending = null, isSending = false, isScheduled = false, wait = FIRST_WAIT_MS;
  const tell = (state) => onChange({ ...state, isKept: !pending || pending.isAgain || store.isKept(keyOf(pending.assignment)) });
  const flush = async () => {
    if (!pending || isSending) return;
    const sent = pending, { assignment, answer, isAgain } = sent, seconds = clock.take();
    pending = null;
    isSending = true;
    const { status, data } = await send(`/annotate/${assignment}/draft?seconds=${seconds.toFixed(1)}${isAgain ? "&again=true" : ""}`, { body: answer, keepalive: true });
    isSending = false;
    if (status === 0) clock.give(seconds);
    const isStored = status >= 200 && status < 300;
    if (isStored && isSame(store.get(keyOf(assignment)), answer)) store.remove(keyOf(assignment));
    if (isStored || DRAFT_REFUSED.includes(status)) {
      wait = FIRST_WAIT_MS;
      if (!pending) tell({ isWaiting: false, isStored: isStored && !isAgain, problem: null });
      else schedule(DRAFT_WAIT_MS);
      if (isStored && data?.outcome) onOutcome(assignment, data.outcome);
      return;
    }
    // What was entered since, or forgotten because the answer is sent, comes before it.
    if (!pending && (isAgain || store.get(keyOf(assignment)))) pending = sent;
    tell({ isWaiting: pending !== null && !pending.isAgain, isStored: false, problem: pending && problemOf(status) });
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
    pending = { assignment, answer, isAgain: false };
    tell({ isWaiting: true, isStored: false, problem: null });
    schedule(DRAFT_WAIT_MS);
  };
  // Ask whether a task is still this person's, and report the time on it: nothing new was entered, and what another window
  // or computer has entered stays.
  const ask = (assignment, answer) => {
    if (!send || pending) return flush();
    pending = { assignment, answer, isAgain: true };
    return flush();
  };
  return {
    save, ask, keyOf,
    // Report the time of somebody who reads: the workbench takes what lies two minutes back for a pause.
    beat: (assignment, answer) => { if (clock.counted() > MOST_UNSENT_SECONDS) ask(assignment, answer); },
    // What was entered here and never reached the workbench.
    unsent: (assignment) => { const draft = store.get(keyOf(assignment)); return isAnswer(draft) ? draft : null; },
    isKept: () => !pending || pending.isAgain || store.isKept(keyOf(pending.assignment)),
    forget: (assignment) => {
      store.remove(keyOf(assignment));
      if (pending?.assignment === assignment) pending = null;
      tell({ isWaiting: pending !== null, isStored: false, problem: null });
    },
    report: () => { if (pending && !isSending) tell({ isWaiting: !pending.isAgain, isStored: false, problem: null }); },
    flush,
  };
};
