# Made by `make docs`.
from sfumato.learning.estimators.additive_model import AdditiveModel as AdditiveModel
from sfumato.learning.estimators.decision_tree import DecisionTree as DecisionTree
from sfumato.learning.estimators.k_means import KMeans as KMeans
from sfumato.learning.estimators.linear_regression import LinearRegression as LinearRegression
from sfumato.learning.estimators.logistic_regression import LogisticRegression as LogisticRegression
from sfumato.learning.estimators.naive_bayes import NaiveBayes as NaiveBayes
from sfumato.learning.estimators.neural_network import NeuralNetwork as NeuralNetwork
from sfumato.learning.estimators.pca import PCA as PCA
from sfumato.learning.estimators.random_forest import RandomForest as RandomForest
from sfumato.learning.search import RandomizedSearch as RandomizedSearch
from sfumato.learning.estimators.standardizer import Standardizer as Standardizer
from sfumato.learning.catalogue import class_name as class_name
from sfumato.learning.catalogue import estimator as estimator
from sfumato.learning.catalogue import estimator_names as estimator_names
