# Made by `make docs`.
from sfumato.integral.learners.decision_tree import DecisionTreeLearner as DecisionTreeLearner
from sfumato.integral.learners.k_means import KMeansLearner as KMeansLearner
from sfumato.integral.learners.linear_regression import LinearRegressionLearner as LinearRegressionLearner
from sfumato.integral.learners.logistic_regression import LogisticRegressionLearner as LogisticRegressionLearner
from sfumato.learning.search import RandomizedSearch as RandomizedSearch
from sfumato.learning.catalogue import class_name as class_name
from sfumato.learning.catalogue import estimator as estimator
from sfumato.learning.catalogue import estimator_names as estimator_names
