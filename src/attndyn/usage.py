"""What `attndyn --help` says."""

HELP = """attndyn: how, when and why does attention learn where to look?

  attndyn list [--json]               the studies, tasks and corpora
  attndyn run STUDY [settings]        train, measure, judge the claims, build the page
  attndyn run STUDY --help            every setting of that study
  attndyn reproduce [STUDY …] [--scale demo|paper] [--json]
                                      the table of claims: published, measured, verdict
  attndyn sweep STUDY … --grid NAME=VALUE,VALUE,… [--out DIR] [--engine ray] [settings] [--json]
                                      a study at every point of a grid, here or on a cluster; nothing is run twice
  attndyn report DIR [--pdf]          build the page and the figures of a run again
  attndyn diagnose --source F --target F | --labelled F | --task NAME
                                      what attention will find easy or hard in your data, before training
  attndyn data list|check|facts|fetch [NAME …] [--data-dir DIR] [--json]
                                      corpora: where they are, whether they are whole, what is in them
  attndyn watch --checkpoints 'GLOB' --builder MODULE:FUNCTION --examples F
                                      how the attention of your own model changed, from its stored checkpoints
  attndyn audit CHECKPOINTS … [--json]
                                      duplicates, swaps, gaps, jumps and foreign shards in a series of checkpoints
  attndyn runs list|show|compare [DIR …] [--under DIR] [--json]
  attndyn runs clean [--under DIR] [--unfinished] [--yes]
                                      the runs on this disk: what there is, what differs, what can go
  attndyn doctor [--json]             what this machine has, and whether attndyn works on it: for a bug report
  attndyn bench [NAME]                the benchmarks (from a checkout)
  attndyn --version

  A first look:  attndyn run copying --scale demo
  The same command again shows a finished run and continues an interrupted one.
"""


def help_of(command: str) -> str:
    """The lines about one command."""
    kept, about = [], False
    for line in HELP.splitlines():
        if not line.startswith("   "):  # what goes on a line before is indented further
            about = line.split()[:2] == ["attndyn", command]
        kept += [line] if about else []
    return "\n".join([*kept, ""])
