# Made by `make docs`.
from sfumato.verification.checks.copied_rows import CopiedRows as CopiedRows
from sfumato.verification.checks.derived_columns import DerivedColumns as DerivedColumns
from sfumato.verification.checks.earlier_releases import EarlierReleases as EarlierReleases
from sfumato.verification.checks.people_per_class import PeoplePerClass as PeoplePerClass
from sfumato.verification.checks.privacy_models import PrivacyModels as PrivacyModels
from sfumato.verification.checks.sensitive_columns import SensitiveColumns as SensitiveColumns
from sfumato.verification.checks.several_rows import SeveralRows as SeveralRows
from sfumato.verification.checks.step_guarantees import StepGuarantees as StepGuarantees
from sfumato.verification.checks.undecided_roles import UndecidedRoles as UndecidedRoles
