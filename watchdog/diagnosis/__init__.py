"""Evidence to the answer: verdict, causes by precedence, what was ruled out, what to collect."""

from __future__ import annotations

import logging
from dataclasses import replace

from watchdog.diagnosis.collect_next import collect_next
from watchdog.diagnosis.policy import STRENGTH, admitted, cautious, yielding
from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis, Finding, Refutation
from watchdog.rules import RULES
from watchdog.rules.documentation import Documentation, documentation
from watchdog.situation import Situation
from watchdog.verdict import verdict_of
from watchdog.verdict.launch import first_failure

logger = logging.getLogger(__name__)


def diagnose(evidence: Evidence) -> Diagnosis:
    """Say who holds whom up and why."""
    situation = Situation(evidence)
    verdict = verdict_of(situation)
    found, refuted, general = _answers(situation)
    error = first_failure(situation)
    first_line = error.text.strip().partition("\n")[0][:80] if error is not None else ""
    causes = yielding(admitted(verdict.state, found, first_line), general)
    # Stable: among findings of one confidence the order of RULES decides.
    causes.sort(key=lambda finding: STRENGTH[finding.confidence])
    to_collect = collect_next(situation, verdict, tuple(causes))
    worded = tuple(cautious(cause, to_collect) for cause in causes)
    return Diagnosis(verdict, worded, tuple(refuted), to_collect)


def _answers(situation: Situation) -> tuple[list[Finding], list[Refutation], set[str]]:
    """Findings, refutations, and which of the rules that fired are general.

    A rule that fails is logged and skipped: one broken rule must not cost the verdict.
    """
    found: list[Finding] = []
    refuted: list[Refutation] = []
    general: set[str] = set()
    for rule in RULES:
        try:
            answer = rule.diagnose(situation)
        except Exception:
            logger.exception("rule %s failed", rule.__name__)
            continue
        if isinstance(answer, Refutation):
            refuted.append(answer)
        elif answer is not None:
            found.append(_completed(answer, documentation(rule)))
            if getattr(rule, "IS_GENERAL", False):
                general.add(answer.rule)
    return found, refuted, general


def _completed(finding: Finding, text: Documentation) -> Finding:
    """Remedy and source from the rule's documentation, where it gave none of its own."""
    remedy, source = finding.remedy or text.what_to_do, finding.source or text.source
    return replace(finding, remedy=remedy, source=source)
