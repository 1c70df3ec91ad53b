# Made by `make docs`.
from sfumato.auditing.policies.audit import Audit as Audit
from sfumato.auditing.demos.audit import AuditDemo as AuditDemo
from sfumato.auditing.rules import AuditRules as AuditRules
from sfumato.auditing.auditor import Auditor as Auditor
from sfumato.auditing.policies.bounded_noise import BoundedNoise as BoundedNoise
from sfumato.auditing.policies.consistent_noise import ConsistentNoise as ConsistentNoise
from sfumato.auditing.policies.consistent_sample import ConsistentSample as ConsistentSample
from sfumato.auditing.policies.exact import Exact as Exact
from sfumato.auditing.policies.fresh_sample import FreshSample as FreshSample
from sfumato.auditing.policies.perturbed import Perturbed as Perturbed
from sfumato.auditing.demos.reconstruction import ReconstructionDemo as ReconstructionDemo
from sfumato.auditing.policies.rounding import Rounding as Rounding
from sfumato.auditing.policies.size_control import SizeControl as SizeControl
from sfumato.auditing.policies.summary_only import SummaryOnly as SummaryOnly
from sfumato.auditing.report.replay import audited_table as audited_table
from sfumato.auditing.report.replay import replay_log as replay_log
