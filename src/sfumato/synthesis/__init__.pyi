# Made by `make docs`.
from sfumato.synthesis.methods.private_synthesis import PrivateSynthesis as PrivateSynthesis
from sfumato.synthesis.model import SynthesisModel as SynthesisModel
