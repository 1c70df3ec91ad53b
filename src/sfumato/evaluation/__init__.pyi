# Made by `make docs`.
from sfumato.evaluation.advice import Advice as Advice
from sfumato.evaluation.evaluation import Evaluation as Evaluation
from sfumato.evaluation.limits import LimitResult as LimitResult
from sfumato.evaluation.advice import advice as advice
from sfumato.evaluation.run import attack_to_dict as attack_to_dict
from sfumato.evaluation.evaluation import evaluate as evaluate
from sfumato.evaluation.limits import judge_limits as judge_limits
from sfumato.evaluation.limits import judged_risk as judged_risk
from sfumato.evaluation.make_release import make_release as make_release
from sfumato.evaluation.limits import reference_rate as reference_rate
from sfumato.evaluation.make_release import release_manifest as release_manifest
from sfumato.evaluation.run import run_attacks as run_attacks
from sfumato.evaluation.run import run_measures as run_measures
from sfumato.evaluation.limits import same_limit as same_limit
from sfumato.evaluation.make_release import with_control as with_control
