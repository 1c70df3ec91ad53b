# Made by `make docs`.
from sfumato.api.kinds.answers import AnswersKind as AnswersKind
from sfumato.api.kinds.graph import GraphKind as GraphKind
from sfumato.api.kinds.graph_statistics import GraphStatisticsKind as GraphStatisticsKind
from sfumato.api.kinds.microdata import MicrodataKind as MicrodataKind
from sfumato.api.kinds.model import ModelKind as ModelKind
from sfumato.api.kinds.tables import TablesKind as TablesKind
from sfumato.api.kinds.trails import TrailsKind as TrailsKind
