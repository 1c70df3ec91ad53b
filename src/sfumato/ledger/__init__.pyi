# Made by `make docs`.
from sfumato.ledger.ledger import Balance as Balance
from sfumato.ledger.charge import Charge as Charge
from sfumato.ledger.ledger import Entry as Entry
from sfumato.ledger.ledger import Ledger as Ledger
