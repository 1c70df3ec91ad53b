# Made by `make docs`.
from sfumato.parties.agreement import Agreement as Agreement
from sfumato.parties.bloom_encoding import BloomEncoder as BloomEncoder
from sfumato.parties.coordinator import Coordinator as Coordinator
from sfumato.parties.demos.hospitals import HospitalsDemo as HospitalsDemo
from sfumato.parties.channels import LocalChannel as LocalChannel
from sfumato.parties.party import Party as Party
from sfumato.parties.intersection_size import PrivateSet as PrivateSet
from sfumato.parties.bloom_encoding import best_links as best_links
from sfumato.parties.bloom_encoding import dice as dice
from sfumato.parties.encoding_attacks import frequency_attack as frequency_attack
from sfumato.parties.trails import match_trails as match_trails
from sfumato.parties.encoding_attacks import pattern_attack as pattern_attack
from sfumato.parties.trails import rare_trails as rare_trails
from sfumato.parties.trails import suppress_visits as suppress_visits
