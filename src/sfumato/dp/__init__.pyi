# Made by `make docs`.
from sfumato.dp.mechanisms.exponential import Exponential as Exponential
from sfumato.dp.mechanisms.gaussian import Gaussian as Gaussian
from sfumato.dp.mechanisms.geometric import Geometric as Geometric
from sfumato.dp.mechanisms.histogram import Histogram as Histogram
from sfumato.dp.mechanisms.laplace import Laplace as Laplace
from sfumato.dp.mechanisms.partition_selection import PartitionSelection as PartitionSelection
from sfumato.dp.mechanisms.quantile import Quantile as Quantile
from sfumato.dp.mechanisms.quantiles import Quantiles as Quantiles
from sfumato.dp.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from sfumato.dp.mechanisms.report_noisy_max import ReportNoisyMax as ReportNoisyMax
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian as RoundedGaussian
from sfumato.dp.mechanisms.sample_and_aggregate import SampleAndAggregate as SampleAndAggregate
from sfumato.dp.mechanisms.sparse_vector import SparseVector as SparseVector
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace as ThresholdedLaplace
