"""Check digits of payment cards, IBANs, national identification numbers and vehicles.

python-stdnum covers all but vehicle numbers. It would add 3.3 MB to every installation for these formulas, and its IBAN
test also rejects unknown country formats, so they stay here.
"""

from __future__ import annotations

import re

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_VIN_VALUES = dict(
    zip("ABCDEFGHJKLMNPRSTUVWXYZ0123456789", [*range(1, 9), *range(1, 6), 7, 9, *range(2, 10), *range(10)], strict=True)
)
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def _digits(text: str) -> list[int]:
    return [int(c) for c in text if c.isdigit()]


def luhn(text: str) -> bool:
    """Luhn algorithm: payment cards, IMEI.

    >>> luhn("4111 1111 1111 1111"), luhn("4111 1111 1111 1112")
    (True, False)
    """
    digits = _digits(text)[::-1]
    doubled = (d * 2 - 9 if d > 4 else d * 2 for d in digits[1::2])
    return any(digits) and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def iban(text: str) -> bool:
    """International bank account number, ISO 13616: the rearranged number modulo 97 is 1.

    >>> iban("DE89 3704 0044 0532 0130 00"), iban("DE89 3704 0044 0532 0130 01")
    (True, False)
    """
    plain = re.sub(r"\s", "", text).upper()
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def dni(text: str) -> bool:
    """Spanish DNI and NIE: the letter encodes the number modulo 23.

    >>> dni("12345678Z"), dni("X1234567L"), dni("12345678A")
    (True, True, False)
    """
    plain = re.sub(r"[\s.-]", "", text).upper()
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and _DNI_LETTERS[int(number) % 23] == plain[-1]


def nir(text: str) -> bool:
    """French social security number: 13 characters and a key, 97 minus the number modulo 97.

    >>> nir("2 55 08 14 168 025 38"), nir("2 55 08 14 168 025 39")
    (True, False)
    """
    plain = re.sub(r"\s", "", text).upper()
    # Corsica writes 2A and 2B for its departments.
    number = int(plain[:13].replace("2A", "19").replace("2B", "18"))
    return 97 - number % 97 == int(plain[13:])


def bsn(text: str) -> bool:
    """Dutch citizen service number (BSN): weighted sum modulo 11.

    >>> bsn("111222333"), bsn("111222334")
    (True, False)
    """
    digits = _digits(text)
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return len(digits) == 9 and any(digits) and sum(w * d for w, d in zip(weights, digits, strict=True)) % 11 == 0


def vin(text: str) -> bool:
    """Vehicle identification number with its ninth character as check digit (North America, China).

    >>> vin("1M8GDM9AXKP042788"), vin("1M8GDM9A1KP042788")
    (True, False)
    """
    plain = text.upper()
    total = sum(_VIN_VALUES[c] * w for c, w in zip(plain, _VIN_WEIGHTS, strict=True))
    return "0123456789X"[total % 11] == plain[8]
