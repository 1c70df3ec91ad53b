# Made by `make docs`.
from sfumato.query.results.answer import Answer as Answer
from sfumato.query.policies.audit import Audit as Audit
from sfumato.query.policies.bounded_noise import BoundedNoise as BoundedNoise
from sfumato.query.catalog import Catalog as Catalog
from sfumato.query.policies.consistent_sample import ConsistentSample as ConsistentSample
from sfumato.query.policies.differential_privacy import DifferentialPrivacy as DifferentialPrivacy
from sfumato.query.policies.exact import Exact as Exact
from sfumato.query.results.explain import Explanation as Explanation
from sfumato.query.policies.fresh_sample import FreshSample as FreshSample
from sfumato.query.policies.perturbed import Perturbed as Perturbed
from sfumato.query.catalog import PrivateTable as PrivateTable
from sfumato.query.catalog import PublicTable as PublicTable
from sfumato.query.session import QueryOptions as QueryOptions
from sfumato.query.policies.rounding import Rounding as Rounding
from sfumato.query.session import Session as Session
from sfumato.query.policies.size_control import SizeControl as SizeControl
from sfumato.query.policies.summary_only import SummaryOnly as SummaryOnly
