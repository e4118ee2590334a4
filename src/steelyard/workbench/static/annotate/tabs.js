// Several windows of one person: one of them sends at a time, and each task is on one of them alone. A browser gives locks
// to pages of HTTPS and of this computer, and takes them back from a page that is closed or crashes; without them the same
// task may be on two pages, and the first answer counts.

// `locks` is `navigator.locks`, `channel` a BroadcastChannel of this person and project; either may be missing.
export const makeTabs = ({ locks, channel, person }) => {
  const held = new Map();
  let claimed = Promise.resolve();
  const claim = async (assignment) => {
    if (!locks || held.has(assignment)) return true;
    return new Promise((resolve) => {
      const hold = (lock) => {
        resolve(lock !== null);
        return lock && new Promise((release) => { held.set(assignment, release); });
      };
      locks.request(`steelyard-task-${person}-${assignment}`, { ifAvailable: true }, hold).catch(() => resolve(true));
    });
  };
  return {
    // Run something in one window at a time.
    alone: (run) => locks ? locks.request(`steelyard-sending-${person}`, run) : run(),
    // Take a task for this window. Returns whether it is this window's.
    claim: (assignment) => claimed = claimed.then(() => claim(assignment)),
    // Leave a task to other windows.
    free: (assignment) => { held.get(assignment)?.(); held.delete(assignment); },
    tell: (word) => channel?.postMessage(word),
    hear: (run) => { if (channel) channel.onmessage = ({ data }) => run(data); },
  };
};
