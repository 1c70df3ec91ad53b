"""Detectors of contact data: e-mail, telephone, fax, web and IP addresses, user names."""

from __future__ import annotations

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.finding import Detector
from sfumato.profiling.detectors.name_patterns import Clue

_TEXT = frozenset({Kind.CATEGORY})
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX = r"[0-9A-Fa-f]{1,4}"
_PHONE = r"\+?[\d(][\d\s().\-/]{5,18}\d(?:\s?(?:x|ext\.?)\s?\d{1,5})?"
_CLEAR_PHONE = (
    r"\+\d[\d\s().\-/]{6,18}\d|\(\d{2,5}\)\s?[\d\s\-]{5,12}\d|\d{3}[\s.-]\d{3}[\s.-]\d{4}|0\d{2,4}[\s/-]\d{5,9}"
)

email = Clue(
    title="an e-mail address",
    role=Role.IDENTIFIER,
    words=("email", "e mail", "mail address", "correo"),
    pattern=r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}",
    alone=0.6,
    kinds=_TEXT,
    hipaa="F",
)
fax = Clue(
    title="a fax number",
    role=Role.IDENTIFIER,
    words=("fax", "fax number", "telefax"),
    pattern=_PHONE,
    hipaa="E",
)
phone = Clue(
    title="a telephone number",
    role=Role.IDENTIFIER,
    words=("phone", "telephone", "mobile", "cell phone", "cellphone", "tel", "telefon", "handy", "telefono", "movil"),
    pattern=_PHONE,
    alone=0.8,
    alone_pattern=_CLEAR_PHONE,
    least=10,
    hipaa="D",
    register=True,
)
url = Clue(
    title="a web address",
    role=Role.IDENTIFIER,
    words=("url", "website", "web site", "homepage", "web page", "linkedin", "facebook"),
    pattern=r"(?:https?|ftp)://\S+|www\.\S+",
    alone=0.8,
    kinds=_TEXT,
    hipaa="N",
)
ip_address = Clue(
    title="an IP address",
    role=Role.IDENTIFIER,
    words=("ip", "ip address", "ipv 4", "ipv 6", "client ip"),
    pattern=rf"{_OCTET}(?:\.{_OCTET}){{3}}|(?:{_HEX}:){{7}}{_HEX}|(?:{_HEX}(?::{_HEX})*)?::(?:{_HEX}(?::{_HEX})*)?",
    alone=0.9,
    kinds=_TEXT,
    hipaa="O",
)
login = Clue(
    title="a user name",
    role=Role.IDENTIFIER,
    words=("username", "user name", "login", "screen name", "handle", "twitter", "benutzername"),
    kinds=_TEXT,
    hipaa="R",
)

DETECTORS: tuple[Detector, ...] = (email, fax, phone, url, ip_address, login)
