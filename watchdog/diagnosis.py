"""Evidence to the answer: verdict, causes by precedence, what was ruled out, what to collect."""

from __future__ import annotations

import logging
from dataclasses import replace

from watchdog.collect_next import collect_next
from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis, Finding, Refutation
from watchdog.policy import admitted
from watchdog.rules import RULES
from watchdog.rules.documentation import documentation
from watchdog.situation import Situation
from watchdog.verdict import verdict_of
from watchdog.verdict.errors import fatal_error

logger = logging.getLogger(__name__)

STRENGTH = {"confirmed": 0, "likely": 1, "possible": 2}


def diagnose(evidence: Evidence) -> Diagnosis:
    """Say who holds whom up and why.

    A rule that fails is logged and skipped: one broken rule must not cost the verdict.
    """
    situation = Situation(evidence)
    verdict = verdict_of(situation)
    causes: list[Finding] = []
    refuted: list[Refutation] = []
    for rule in RULES:
        try:
            answer = rule.diagnose(situation)
        except Exception:
            logger.exception("rule %s failed", rule.__name__)
            continue
        if isinstance(answer, Refutation):
            refuted.append(answer)
        elif answer is not None:
            text = documentation(rule)
            causes.append(
                replace(
                    answer,
                    remedy=answer.remedy or text.what_to_do,
                    source=answer.source or text.source,
                )
            )
    error = fatal_error(situation)
    causes = admitted(verdict.state, causes, error.text.splitlines()[0][:80] if error else "")
    # Stable: among findings of one confidence the order of RULES decides.
    causes.sort(key=lambda finding: STRENGTH[finding.confidence])
    return Diagnosis(
        verdict, tuple(causes), tuple(refuted), collect_next(situation, verdict, tuple(causes))
    )
