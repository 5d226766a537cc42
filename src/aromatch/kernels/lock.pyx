"""A lock for many readers or one writer, and a block whose changes are undone if it fails.

Both are compiled so that a signal such as Ctrl-C cannot come between entering or leaving them and the block that they
protect, as it can in Python code, and because `learn_one` has no time for more. The GIL protects their attributes.
"""

from _thread import allocate_lock, get_ident
from os import getpid

cimport cython
from cpython.exc cimport PyErr_CheckSignals

# Seconds after which a waiting thread looks again; usually it is woken up before.
cdef double _PATIENCE = 0.1
# Times that a change is restored anew when this is interrupted.
cdef int _MAX_FAILURES = 100


cdef class ReadWriteLock:
    """Three ways to hold an object, each a context manager that the same thread may enter again.

    `writing` excludes other writers: one thread prepares a change. `changing` also waits for readers and excludes them:
    the change becomes visible. `reading` excludes `changing` and lets other readers in.

    A thread that reads cannot write, since two such threads would wait for each other: `error` is raised. It is also
    raised in a process that was forked while another thread was writing.
    """

    cdef readonly object reading, writing, changing
    cdef object _turn, _gate, _idle, _error, _pid, _writer
    cdef dict _readers
    cdef int _n_writing, _n_changing
    cdef bint _waits

    def __init__(self, error):
        self.reading, self.writing, self.changing = _Reading(self), _Writing(self), _Changing(self)
        self._turn, self._gate, self._idle = allocate_lock(), allocate_lock(), allocate_lock()
        self._idle.acquire()
        self._error, self._pid, self._readers = error, getpid(), {}

    cdef _enter_reading(self):
        me = get_ident()
        depth = self._readers.get(me)
        if depth is not None:  # a writer waits for this thread, which must not wait for the writer
            self._readers[me] = depth + 1
        elif self._n_changing and self._writer == me:
            self._readers[me] = 1
        else:
            self._acquire(self._gate)
            self._readers[me] = 1
            self._gate.release()

    cdef _leave_reading(self):
        me = get_ident()
        depth = self._readers[me]
        if depth > 1:
            self._readers[me] = depth - 1
            return
        del self._readers[me]
        if self._waits and self._idle.locked():
            self._idle.release()

    cdef _enter_writing(self):
        me = get_ident()
        if self._writer != me:
            if me in self._readers:
                raise self._error("a call that reads an object cannot change it; change it after the call")
            self._acquire(self._turn)
            self._writer = me
        self._n_writing += 1

    cdef _leave_writing(self):
        self._n_writing -= 1
        if not self._n_writing:
            self._writer = None
            self._turn.release()

    cdef _enter_changing(self):
        self._enter_writing()
        try:
            if not self._n_changing:
                self._acquire(self._gate)
                try:
                    self._wait_for_readers()
                except BaseException:
                    self._gate.release()
                    raise
        except BaseException:
            self._leave_writing()
            raise
        self._n_changing += 1

    cdef _leave_changing(self):
        self._n_changing -= 1
        if not self._n_changing:
            self._gate.release()
        self._leave_writing()

    cdef _wait_for_readers(self):
        me = get_ident()
        self._waits = True
        try:
            while len(self._readers) > (me in self._readers):
                if getpid() != self._pid:  # the threads that read were not forked
                    self._readers = {me: self._readers[me]} if me in self._readers else {}
                else:
                    self._idle.acquire(True, _PATIENCE)
                    PyErr_CheckSignals()
        finally:
            self._waits = False

    cdef _acquire(self, lock):
        if lock.acquire(False):
            return
        while not lock.acquire(True, _PATIENCE):
            PyErr_CheckSignals()
            if getpid() != self._pid:
                raise self._error("the process was forked while another thread was changing an object; copy it before")


cdef class _Reading:
    cdef ReadWriteLock _lock

    def __init__(self, ReadWriteLock lock):
        self._lock = lock

    def __enter__(self):
        self._lock._enter_reading()

    def __exit__(self, *error):
        self._lock._leave_reading()


cdef class _Writing:
    cdef ReadWriteLock _lock

    def __init__(self, ReadWriteLock lock):
        self._lock = lock

    def __enter__(self):
        self._lock._enter_writing()

    def __exit__(self, *error):
        self._lock._leave_writing()


cdef class _Changing:
    cdef ReadWriteLock _lock

    def __init__(self, ReadWriteLock lock):
        self._lock = lock

    def __enter__(self):
        self._lock._enter_changing()

    def __exit__(self, *error):
        self._lock._leave_changing()


@cython.auto_pickle(False)
cdef class Undoing:
    """Context manager of a block that takes effect as a whole or, if it raises an exception, not at all."""

    cdef list _undo

    def __cinit__(self, *args, **kwargs):
        self._undo = []

    def note(self, undo):
        """Note how to restore what is about to change: a function that may be called again after an interrupt."""
        self._undo.append(undo)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not None:
            self._roll_back()
        self._undo = []

    cdef _roll_back(self):
        """Restore everything, the last change first; raise what interrupted it when all is restored."""
        first = None
        for undo in reversed(self._undo):
            for _ in range(_MAX_FAILURES):
                try:
                    undo()
                    break
                except BaseException as error:
                    first = error if first is None else first
        if first is not None:
            raise first


@cython.auto_pickle(False)
cdef class Locked:
    """Base class of objects with a lock, which is not among their attributes: it is neither copied nor pickled.

    The lock is there before ``__init__``, also in copies, and the signature of the constructor remains its own.
    """

    _concurrent_use = RuntimeError
    """Raised for use that would never end."""
    cdef readonly ReadWriteLock _lock

    def __cinit__(self, *args, **kwargs):
        self._lock = ReadWriteLock(self._concurrent_use)
