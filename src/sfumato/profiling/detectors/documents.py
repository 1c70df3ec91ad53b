"""Detectors of official numbers: identity documents, accounts, records, licences, devices."""

from __future__ import annotations

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.check_digits import bsn, dni, iban, luhn, nir, vin
from sfumato.profiling.detectors.finding import Detector
from sfumato.profiling.detectors.name_patterns import Clue

_CODES = frozenset({Kind.CATEGORY, Kind.INTEGER})
_SSN = r"(?:00[1-9]|0[1-9]\d|[1-578]\d\d|6(?:[0-57-9]\d|6[0-57-9]))-(?:0[1-9]|[1-9]\d)-\d{4}"


def _clue(title: str, hipaa: str, words: tuple[str, ...], **more: object) -> Clue:
    return Clue(title=title, role=Role.IDENTIFIER, hipaa=hipaa, words=words, kinds=_CODES, **more)  # type: ignore[arg-type]


us_ssn = _clue(
    "a US social security number",
    "G",
    ("ssn", "social security", "social security number", "soc sec", "ss number"),
    pattern=rf"{_SSN}|\d{{9}}",
    alone=0.9,
    alone_pattern=_SSN,
    least=10,
)
spanish_dni = _clue(
    "a Spanish DNI or NIE",
    "G",
    ("dni", "nie", "nif"),
    pattern=r"(?i)[\dXYZ]\d{7}[\s.-]?[A-Z]",
    check=dni,
    alone=0.8,
    least=5,
)
french_nir = _clue(
    "a French social security number",
    "G",
    ("nir", "insee", "numero securite sociale", "securite sociale"),
    pattern=r"[1-478]\s?\d{2}\s?\d{2}\s?(?:\d{2}|2[AB])\s?\d{3}\s?\d{3}\s?\d{2}",
    check=nir,
    alone=0.8,
    least=5,
)
dutch_bsn = _clue(
    "a Dutch citizen service number",
    "G",
    ("bsn", "burgerservicenummer", "sofinummer"),
    pattern=r"\d{9}",
    check=bsn,
    alone=0.9,
    least=10,
)
national_id = _clue(
    "a national or tax number",
    "G",
    (
        *("national id", "national insurance", "nino", "tax id", "tin", "itin", "steuer id", "steuernummer", "cpf"),
        *("codice fiscale", "pesel", "personnummer", "cpr", "aadhaar", "sin", "ahv", "sozialversicherungsnummer"),
        *("social insurance", "nhs number", "nhs"),
    ),
)
bank_account = _clue(
    "an IBAN",
    "J",
    ("iban",),
    pattern=r"(?i)[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{1,4}){3,8}",
    check=iban,
    alone=0.5,
    least=2,
)
payment_card = _clue(
    "a payment card number",
    "J",
    ("card number", "credit card", "pan", "cc number", "card no", "kreditkarte", "creditcard number"),
    pattern=r"[2-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}",
    check=luhn,
    alone=0.9,
    least=10,
)
account = _clue(
    "an account number",
    "J",
    ("account number", "account no", "account id", "account", "acct", "kontonummer", "customer number", "customer id"),
    spread=0.2,
)
medical_record = _clue(
    "a medical record number",
    "H",
    (
        *(
            "mrn",
            "medical record",
            "medical record number",
            "record number",
            "chart number",
            "patient id",
            "patient no",
        ),
        *(
            "patient number",
            "patientennummer",
            "fallnummer",
            "hospital number",
            "encounter id",
            "visit id",
            "subject id",
        ),
    ),
)
health_plan = _clue(
    "a health plan number",
    "I",
    (
        *(
            "member id",
            "beneficiary",
            "beneficiary id",
            "health plan",
            "policy number",
            "insurance number",
            "hicn",
            "mbi",
        ),
        *("medicare number", "medicaid id", "versichertennummer", "subscriber id", "insurance id"),
    ),
)
license_number = _clue(
    "a certificate or license number",
    "K",
    (
        *("license number", "licence number", "license no", "driver license", "drivers license", "driving licence"),
        *("passport", "passport number", "certificate number", "permit number", "fuhrerschein", "id card"),
    ),
)
vehicle = _clue(
    "a vehicle identification number",
    "L",
    ("vin", "vehicle id", "chassis number"),
    pattern=r"(?i)[A-HJ-NPR-Z0-9]{17}",
    check=vin,
    alone=0.8,
    least=5,
)
plate = _clue(
    "a license plate", "L", ("license plate", "licence plate", "plate", "plate number", "number plate", "kennzeichen")
)
device = _clue(
    "a device number",
    "M",
    (
        *(
            "device id",
            "device serial",
            "serial number",
            "serial no",
            "imsi",
            "mac",
            "mac address",
            "udid",
            "iccid",
        ),
        *("advertising id", "idfa", "implant serial"),
    ),
)
imei = _clue("a device number (IMEI)", "M", ("imei", "meid"), pattern=r"\d{15}", check=luhn)
mac_address = _clue(
    "a hardware address", "M", (), pattern=r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", alone=0.8, least=2
)
biometric = _clue(
    "a biometric identifier",
    "P",
    ("fingerprint", "finger print", "iris code", "retina", "voiceprint", "voice print", "biometric", "face template"),
)
photograph = _clue("a photograph", "Q", ("photo", "photograph", "portrait", "face image", "selfie", "picture"))
universal_id = _clue(
    "a universally unique id",
    "R",
    ("uuid", "guid"),
    pattern=r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
    alone=0.8,
    least=2,
)

DETECTORS: tuple[Detector, ...] = (
    *(us_ssn, spanish_dni, french_nir, dutch_bsn, national_id, bank_account, payment_card, account),
    *(medical_record, health_plan, license_number, vehicle, plate, device, imei, mac_address, biometric, photograph),
    universal_id,
)
