"""What goes wrong, and what the ranks must be told then."""

from dataclasses import dataclass, field

ABORTED, PEER, MISMATCH, TIMEOUT = -12, -13, -14, -11
TIME_LIMIT = 2              # of calls, in seconds, where a rank is late or stopped
THREADS = {"thread": {"MESHCOLL_PROGRESS": "thread"}, "multiple": {"MESHCOLL_THREADS": "multiple"}}
ALL = ("one-box", "tcp", "2x2", "lab")


@dataclass
class Scenario:
    name: str
    job: str                            # what the ranks are told to do (job.c)
    what: str
    status: int = PEER                  # of the error
    ends: str = "killed"                # the victim: killed, aborted, left, told (the same as the others), or cut
    places: tuple = ALL
    env: dict = field(default_factory=dict)     # None: not set
    first: bool = False                 # the victim is rank 0, else any other
    soon: int = 80                      # milliseconds within which a rank dies that does so while it starts
    act: str = ""                       # what run.py does to it (play.py)
    within: float = 5.0                 # seconds from the fault to the error
    destroyed: float = 1.0              # seconds that meshcoll_destroy may take
    needs: str = ""                     # a public name without which the library cannot do it
    short: int = 2                      # how often a long run of ctest plays it in each place


def disagreements():
    for way in ("op", "datatype", "root", "count", "collective"):
        yield Scenario(f"{way}/check", way, f"one rank gives another {way}; MESHCOLL_CHECK=1", MISMATCH, "told",
                       env={"MESHCOLL_CHECK": "1"}, needs="MESHCOLL_CHECK", short=1)
        yield Scenario(way, way, f"one rank gives another {way}, in the first call", MISMATCH, "told",
                       places=("tcp",), needs="MESHCOLL_CHECK", short=1)


def threaded():
    for name, env in THREADS.items():
        yield Scenario(f"allreduce/{name}", "allreduce", f"kill -9 in an allreduce, {name}", env=env, short=1)
        yield Scenario(f"meshabort/{name}", "meshabort", f"meshcoll_abort, {name}", ABORTED, "told", env=env, short=1)


LIMIT = {"MESHCOLL_TIMEOUT": str(TIME_LIMIT)}


def halted_calibrating():
    for name, first in (("halt-calibrating", False), ("halt-calibrating-rank0", True)):
        yield Scenario(name, "halt", "SIGSTOP while links are measured", TIMEOUT, within=TIME_LIMIT + 5.0, first=first,
                       act="end_halted", soon=500, places=("one-box", "tcp", "2x2"), short=1,
                       env={"MESHCOLL_BOOTSTRAP_TIMEOUT": str(TIME_LIMIT), "MESHCOLL_LINKS": None,
                            "XDG_CACHE_HOME": "/proc/none", **LIMIT})


SCENARIOS = [
    Scenario("allreduce", "allreduce", "kill -9 in the middle of an allreduce"),
    Scenario("bcast", "bcast", "kill -9 in the middle of a bcast"),
    Scenario("idle", "idle", "kill -9 between calls"),
    Scenario("agreement", "agreement", "kill -9 while ranks agree on what calls have learned", short=1),
    Scenario("early", "early", "kill -9 as soon as there is a mesh"),
    Scenario("early-rank0", "early", "kill -9 of rank 0 as soon as there is a mesh", first=True, short=1),
    Scenario("creation", "creation", "kill -9 while the mesh is made: all end", ends="any", within=15.0,
             env={"MESHCOLL_BOOTSTRAP_TIMEOUT": "5"}),
    Scenario("halt", "halt", "SIGSTOP while the mesh is made", TIMEOUT, within=TIME_LIMIT + 6.0, act="end_halted",
             env={"MESHCOLL_BOOTSTRAP_TIMEOUT": str(TIME_LIMIT), **LIMIT}, short=1),
    *halted_calibrating(),
    Scenario("further", "further", "kill -9 while the others make another mesh, which waits for all", short=1),
    Scenario("further-rank0", "further", "the same of rank 0, which they seek", first=True, short=1),
    Scenario("rank0", "allreduce", "kill -9 of rank 0", first=True),
    Scenario("bcast-root", "bcast", "kill -9 of a bcast's root", first=True),
    Scenario("abort", "abort", "abort() in the middle of an allreduce", ends="aborted"),
    Scenario("exit", "exit", "exit status 0 without meshcoll_destroy", ends="left"),
    Scenario("fork", "fork", "kill -9, while a forked child lives on", short=1),
    Scenario("meshabort", "meshabort", "meshcoll_abort", ABORTED, "told"),
    *threaded(),
    Scenario("refused", "refused", "a call is refused on one rank", ends="told"),
    Scenario("stop", "stop", "SIGSTOP", TIMEOUT, "told", env=LIMIT, within=TIME_LIMIT + 2.0,
             destroyed=TIME_LIMIT + 1.0, needs="meshcoll_set_timeout", act="resume", short=1),
    Scenario("late", "late", "a rank comes late to a call", TIMEOUT, "told", env=LIMIT, within=TIME_LIMIT + 2.0,
             needs="meshcoll_set_timeout", short=1),
    *disagreements(),
    Scenario("box", "box", "kill -9 of all ranks of a box at once", places=("2x2", "lab"), act="kill_box"),
    Scenario("link", "link", "a box's port of the switch goes down", places=("lab",), act="cut_port", ends="cut",
             within=7.5, short=1),
    Scenario("blink", "scan", "a box's port is down for 3 s, which harms nothing; then kill -9", places=("lab",),
             act="blink", short=1),
    Scenario("nic", "link", "a box's own network device goes down", places=("lab",), act="cut_nic", ends="cut",
             within=7.5, short=1),
    Scenario("machine", "box", "a box ends with all that it has", places=("lab",), act="kill_machine", short=1),
    Scenario("scan", "scan", "garbage and a scan of the monitors' ports harm nothing; then kill -9",
             places=("one-box", "tcp"), act="scan", short=1),
    Scenario("descriptors", "descriptors", "a rank of 16 has few descriptors: nobody waits for ever",
             places=("tcp",), ends="any", within=15.0, short=3, env={"MESHCOLL_BOOTSTRAP_TIMEOUT": "5"}),
]
