"""The evidence of a node none of whose ranks can speak: all of it as seen from outside."""

from __future__ import annotations

from dataclasses import replace

from watchdog import masking
from watchdog.evidence import Evidence
from watchdog.incident.flow import Seams
from watchdog.incident.folder import IncidentFolder
from watchdog.incident.merge import Gathering
from watchdog.incident.neighbours import Neighbours
from watchdog.timing.stall_context import StallContext

# A look belongs to no incident, and finds nothing that a rank delivered to one.
_NO_INCIDENT = "none"


def silent_node_evidence(context: StallContext, *, seams: Seams | None = None) -> Evidence:
    """Look at all ranks of this node twice, a second apart, and at what runs beside them.

    Args:
        context: Any rank of the node as its black box tells it.
        seams: Stand-ins for tests.
    """
    seams = seams or Seams()
    masking.hide_names_with(context.settings.redact)
    # Whose box it is makes no difference: that rank has delivered nothing either.
    context = replace(context, identity=replace(context.identity, rank=None))
    neighbours = Neighbours(context, seams.capture, seams.find_processes)
    neighbours.look()
    identity = context.identity
    nothing = Evidence("watchdog", world_size=identity.world_size, framework=identity.framework)
    folder = IncidentFolder(context.run_folder, _NO_INCIDENT)
    evidence = Gathering(context, folder, nothing, seams.capture, seams.sleep).evidence(0.0)
    return neighbours.added_to(evidence, sleep=seams.sleep)
