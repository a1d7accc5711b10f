"""Starting one program, reading its lines as they come, and stopping it when it hangs."""

import contextlib
import hashlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time

GRACE = 10.0        # seconds `lab run` has to clear its boxes
OUT_OF_TIME = -1.0


class Outcome:
    def __init__(self, status, hung, last_words):
        self.status, self.hung, self.last_words = status, hung, last_words

    def reason(self):
        """Why it did not do all it was asked."""
        if self.hung == OUT_OF_TIME:
            return "stopped, the budget was over"
        words = f": {self.last_words}" if self.last_words else ""
        if self.hung:
            return f"no sign of life for {self.hung:.0f} s, stopped{words}"
        return f"exit status {self.status}{words}"


def run(command, env, patience, on_line, budget=float("inf")):
    """Run to the end, handing each line of stdout to on_line. patience() is how many seconds it may stay
    silent now. Stops it, and all it started, when it stays silent longer, when the budget of seconds is
    over, or when we are interrupted."""
    deadline = time.monotonic() + budget
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                 start_new_session=True)
        lines = queue.Queue()
        reader = threading.Thread(target=read_lines, args=(child.stdout, lines), daemon=True)
        reader.start()
        try:
            hung = follow(lines, patience, on_line, deadline)
            if hung:
                stop(child)
            status = child.wait(GRACE)
        except subprocess.TimeoutExpired:       # it closed its output and stays
            hung, status = GRACE, None
        finally:
            stop(child)
        return Outcome(status, hung, last_words(errors))


def read_lines(pipe, lines):
    for line in pipe:
        lines.put(line.decode(errors="replace"))
    lines.put(None)


def follow(lines, patience, on_line, deadline):
    """To the end of output: 0; or the seconds it stayed silent, or OUT_OF_TIME."""
    while True:
        seconds, left = patience(), deadline - time.monotonic()
        try:
            line = lines.get(timeout=max(min(seconds, left), 0.01))
        except queue.Empty:
            return seconds if seconds < left else OUT_OF_TIME
        if line is None:
            return 0
        on_line(line)


def stop(child):
    """First asked, so that the lab clears its boxes; the whole group is killed in the end."""
    for signum, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        if child.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def last_words(errors):
    """The last line on stderr that says something, without mpirun's frames."""
    errors.seek(0)
    text = errors.read().decode(errors="replace")
    said = [line.strip() for line in text.splitlines() if any(c.isalpha() for c in line)]
    said = [line for line in said if not line.startswith("lab: ranks ")]     # of uneven placements, no reason
    ours = [line for line in said if line.startswith(("meshcoll", "peer:", "lab"))]
    return (ours or said or [""])[-1][:200]


def output_of(command, env=None, seconds=60):
    """Stdout of a short command; '' where it cannot be had."""
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def digest(paths):
    """What tells whether programs are still the same ones."""
    whole = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            whole.update(file.read())
    return whole.hexdigest()[:16]
