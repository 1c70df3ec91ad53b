# Made by `make docs`.
from sfumato.query.results.answer import Answer as Answer
from sfumato.query.plan.catalog import Catalog as Catalog
from sfumato.query.policies.differential_privacy import DifferentialPrivacy as DifferentialPrivacy
from sfumato.query.results.explain import Explanation as Explanation
from sfumato.query.plan.catalog import PrivateTable as PrivateTable
from sfumato.query.plan.catalog import PublicTable as PublicTable
from sfumato.query.session import QueryOptions as QueryOptions
from sfumato.query.session import Session as Session
