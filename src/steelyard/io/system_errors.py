"""Errors of the operating system as errors of ours: what the user can do about each."""

import errno

from steelyard.core.errors import FileError

REMEDIES = {
    errno.EACCES: "change its permissions, or choose another path",
    errno.EPERM: "change its permissions, or choose another path",
    errno.EROFS: "choose a path on a writable file system",
    errno.ENOSPC: "free disk space there, or choose another path; files written before are intact",
    errno.EDQUOT: "free disk space there, or choose another path; files written before are intact",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "give the file itself: the link leads back to itself",
    errno.ENOTDIR: "choose a path whose parents are folders",
    errno.ENOENT: "it was removed or renamed during the run: run the same again",
    errno.EFBIG: "raise the file size limit (ulimit -f), or choose another path",
    errno.EIO: "check the disk or the network that holds it, and run the same again",
    errno.ESTALE: "the network disk has lost it: run the same again",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
    errno.ENOMEM: "free memory, or use a machine with more; files written before are intact",
    errno.EISDIR: "choose a file where a file is expected",
    errno.ENXIO: "give a regular file: sockets and devices cannot be read",
    errno.EEXIST: "choose another path: a file is in the place of a folder",
}
"""By error number of the operating system: what the user can do."""


def system_error(error: OSError) -> FileError | None:
    """Return the error with its file and a remedy; null for one that no user can cause or repair."""
    do = REMEDIES.get(error.errno or 0)
    if do is None:
        return None
    return FileError((error.strerror or str(error)).lower(), where=error.filename and str(error.filename), do=do)
