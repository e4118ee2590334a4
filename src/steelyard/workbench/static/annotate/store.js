// What this page keeps in the browser until the workbench has it. Each value has a key of its own, which two windows of one
// person never write at once. `localStorage` answers at once and every window sees it, but loses the last seconds, up to a
// minute, when the browser is killed; the journal, in IndexedDB, comes milliseconds later and is on the disk.

const OPENING_MS = 3000;

// The browser's storage; an access alone can be refused, as where sites may store nothing.
export const storageOf = (place) => { try { return place.localStorage; } catch { return null; } };

// Keys and values on the disk. `openDatabase` is `indexedDB.open`. Changes in a row are written together. Every call gives a promise that never fails:
// `put` and `remove` whether it is done, `all` a Map, which is empty where there is nothing to open.
export const makeJournal = (openDatabase, later) => {
  let opened = null, changes = new Map(), last = Promise.resolve(), next = null;
  const open = () => opened ??= new Promise((resolve, reject) => {
    const request = openDatabase("steelyard", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("kept");
    request.onsuccess = () => { request.result.onclose = () => { opened = null; }; resolve(request.result); };
    request.onerror = () => reject(request.error);
    later(() => reject(new Error("IndexedDB does not open")), OPENING_MS);
  });
  const run = async (mode, work) => {
    const transaction = (await open()).transaction("kept", mode, { durability: "strict" });
    return new Promise((resolve, reject) => {
      const result = work(transaction.objectStore("kept"));
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error);
    });
  };
  // The result of `work`; null where it fails, also with a connection that is opened again.
  const tried = async (mode, work) => {
    for (const isLast of [false, true]) {
      try { return await run(mode, work); } catch { opened = null; if (isLast) return null; }
    }
  };
  const write = async () => {
    const written = changes;
    [changes, next] = [new Map(), null];
    return await tried("readwrite", (place) => {
      for (const [key, value] of written) if (value === undefined) place.delete(key); else place.put(value, key);
      return true;
    }) === true;
  };
  const change = (key, value) => { changes.set(key, value); return next ??= last = last.then(write); };
  return {
    put: change,
    remove: (key) => change(key, undefined),
    all: async () => {
      const found = await tried("readonly", (place) => [place.getAllKeys(), place.getAll()]);
      return new Map(found ? found[0].result.map((key, number) => [key, found[1].result[number]]) : []);
    },
  };
};

// Values by key, read and written at once. `isKept(key)` tells whether a value outlives the page; `onKept` hears when that
// may have changed.
export const makeStore = (storage, journal = null) => {
  const memory = new Map(), latest = new Map(), onDisk = new Set();
  let heard = () => {};
  const read = (key) => { try { return storage.getItem(key); } catch { return null; } };
  const parsed = (key) => { try { return JSON.parse(read(key)); } catch { return null; } };
  const write = (key, value) => {
    const text = JSON.stringify(value), before = read(key);
    try { storage.setItem(key, text); memory.delete(key); return; } catch { memory.set(key, value); }
    // What is there is older. The journal gets the new value; without a journal the older one is better than none.
    if (!journal || before === null) return;
    try { storage.removeItem(key); storage.setItem(key, text); memory.delete(key); } catch { /* it is in memory and in the journal */ }
  };
  const set = (key, value) => {
    const change = {};
    write(key, value);
    onDisk.delete(key);
    latest.set(key, change);
    journal?.put(key, value).then((isDone) => { if (isDone && latest.get(key) === change) onDisk.add(key); heard(); });
  };
  return {
    get: (key) => memory.has(key) ? memory.get(key) : parsed(key),
    // What is stored, as it is: where it cannot be read.
    raw: read,
    set,
    remove: (key) => {
      memory.delete(key);
      onDisk.delete(key);
      latest.delete(key);
      try { storage.removeItem(key); } catch { /* nothing is stored there */ }
      journal?.remove(key);
    },
    keys: (prefix) => {
      let stored = [];
      try { stored = Array.from({ length: storage.length }, (_, number) => storage.key(number)); } catch { /* nothing is stored */ }
      return [...new Set([...stored, ...memory.keys()])].filter((key) => key?.startsWith(prefix));
    },
    isKept: (key) => !memory.has(key) || onDisk.has(key),
    onKept: (run) => { heard = run; },
    // Store what could not be stored before: there may be room by now.
    persist: () => { for (const [key, value] of [...memory]) if (!onDisk.has(key)) set(key, value); },
    // Take over what only the journal has: the browser was killed, or its storage was full.
    restore: async () => {
      for (const [key, value] of journal ? await journal.all() : []) {
        if (memory.has(key) || parsed(key) !== null) continue;
        write(key, value);
        onDisk.add(key);
      }
    },
  };
};
