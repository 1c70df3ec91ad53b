"""Patterns of dates, ages, numbers and contacts in English text, with the words around them.

A pattern with a group has the identifier in it; without one, all of the match is the identifier.
"""

from __future__ import annotations

import re

# Dates -------------------------------------------------------------------------------------------------------------

_MONTH = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_JOINED_MONTH = r"(?:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b\.?,?\s+)"
_YEAR = r"(?:19|20)\d{2}"
_NUMERIC_DAY, _NUMERIC_MONTH = r"(?:0[1-9]|[12]\d|3[01])", r"(?:0[1-9]|1[0-2])"
DATES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:T\d{1,2}:\d{2}(?::\d{2})?Z?)?(?![\w/])",
        r"\b\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d{2})(?![\w/])",
        rf"\b{_WEEKDAY}?(?:the\s+)?{_DAY}\.?[ -]?(?:of\s+)?{_MONTH}(?:,?[ -]\d{{4}}|[ -]['’]?\d{{2}}(?!\d))?(?![\w/])",
        rf"\b{_WEEKDAY}?{_MONTH}\s+(?:the\s+)?{_DAY}(?:,?\s+(?:\d{{4}}|['’]\d{{2}}))?(?![\w/])",
        rf"\b{_MONTH},?\s+(?:of\s+)?\d{{4}}(?![\w/])",
        rf"\b\d{{1,2}}(?i:{_JOINED_MONTH})(?:\d{{4}}|\d{{2}})(?!\w)",
        rf"(?<![\w./]){_NUMERIC_DAY}\.{_NUMERIC_MONTH}\.(?!\d)",
        rf"(?<![\w./]){_NUMERIC_MONTH}/{_NUMERIC_DAY}(?![\w/])",
        rf"(?<![\w./])(?:0?[1-9]|1[0-2])/{_YEAR}(?![\w/])",
        rf"(?<![\w.]){_YEAR}{_NUMERIC_MONTH}{_NUMERIC_DAY}(?!\w)",
        r"\b(?:on|since|until|till|by|from|dated)\s+(?P<date>\d{1,2}/\d{1,2})(?![\w/])",
        rf"\b(?i:early|mid|late|end of|start of|beginning of)[ -]{_MONTH}(?![\w/])",
        rf"\b(?i:spring|summer|autumn|fall|winter|easter|christmas|thanksgiving)(?:\s+of)?,?\s+{_YEAR}(?!\w)",
        rf"\b(?i:in|since|until|till|from|of|by|year|during|before|after|around)\s+(?P<date>{_YEAR})(?![\w/-]|\.\d)",
        rf"\b(?:{_WEEKDAY}(?:the\s+)?|on the )\d{{1,2}}(?:st|nd|rd|th)(?!\w)",
    )
)

# Ages --------------------------------------------------------------------------------------------------------------

_ONES = r"(?:one|two|three|four|five|six|seven|eight|nine)"
_TEENS = r"(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_NUMBER = rf"(?:\d{{1,3}}|(?i:{_TENS}(?:[- ]{_ONES})?|{_TEENS}|{_ONES}))"
_PERSON = (
    r"(?i:man|woman|boy|girl|male|female|gentleman|lady|person|patient|widow|widower|mother|father|grand\w+|passenger|"
    r"driver|child|resident|tenant|student|pupil|lad|guy)"
)
AGES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?P<age>{_NUMBER})[ -]?(?:years?|yrs?|months?|weeks?)[ -](?:old|of age)(?!\w)",
        rf"\b[Aa]ge(?:d|s)?(?:\s+(?:at|on|of)(?:\s+\w+)?)?\s*[:=]?\s+(?P<age>{_NUMBER})(?!\w)",
        r"\b(?P<age>\d{1,3})\s?-?(?:yo|y/o|y\.o\.|yr)(?!\w)",
        r"\b(?P<age>\d{2})\s?[MF](?=[\s,.;)])",
        r"(?:\b(?:[Ii]s|[Ww]as|[Bb]e|[Aa]m|[Ii]'m|[Tt]urn(?:ed|s|ing)?|[Nn]ow|[Bb]ecame)\s+)(?P<age>\d{1,2})"
        r"(?=[.,;)]|\s+(?:and|in|now|today|years?|on|this|next|last|but|soon)\b)",
        rf"\b{_PERSON}\s+of\s+(?P<age>\d{{1,3}}|(?i:{_TENS}(?:[- ]{_ONES})?|{_TEENS}))(?!\w)",
        rf"\b{_PERSON},\s+(?P<age>\d{{1,3}})(?=[,.;)])",
        r"(?<=[^\W\d_]\s)(?<!section )(?<!figure )(?<!table )(?<!study )(?<!item )"
        r"\((?:aged?\s+)?(?P<age>\d{1,2})(?:\s?(?:years?|yrs?|yo|[MFmf]))?\)",
        r"(?<=[^\W\d_]),\s+(?P<age>\d{2})(?=,\s+(?:lives?|living|from|of|who|an?|the|married|single|works?|has|is)\b)",
        r"\b(?P<age>\d{1,3}(?:st|nd|rd|th))\s+birthday\b",
        r"\bin (?:his|her|their|my|your) (?P<age>(?:(?:early|mid|late)[ -])?"
        r"(?:teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|[1-9]0s))\b",
    )
)

# Numbers -----------------------------------------------------------------------------------------------------------

CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{2,4}){3,8}\b")
_NUMBERED = (
    r"(?i:MRN|SSN|NHS|NI|ID|UPN|VIN|patient|record|case|claim|chart|file|account|acct|policy|passport|licen[cs]e|permit|"
    r"ref(?:erence)?|member(?:ship)?|hospital|complaint|invoice|ticket|order|customer|client|badge|employee|staff|student|"
    r"registration|plate|vehicle|serial|insurance|tax|visa|docket|incident|certificate|specimen|accession|unit)"
)
_TOKEN = r"(?=(?:[A-Za-z./-]*\d){3})[A-Za-z0-9](?:[A-Za-z0-9]|[./-](?=[A-Za-z0-9])){2,}"
_SPACED = r"(?:[A-Z]{1,3}\s)?\d{2,6}(?:\s\d{2,6})+(?:\s[A-Z]\b)?"
NAMED_ID = re.compile(
    rf"\b{_NUMBERED}\b\.?(?:\s+(?i:no|nr|num|number|id|code|is|was|card)\b\.?)*\s*[:#=]?\s*"
    rf"(?P<id>{_SPACED}|{_TOKEN})(?!\w)"
)
IDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)",
        NAMED_ID.pattern,
        rf"\b(?i:no|nr|number|code)\b\.?\s*[:#]?\s*(?P<id>{_SPACED}|{_TOKEN})(?!\w)",
        r"(?<![\w.,])[A-Z]{0,3}-?\d(?:[ /-]?\d){5,}[A-Z]?(?![\w]|[.,]\d)",
        r"(?<![\w.,])\d{3}(?:\.\d{3}){2,}(?!\w|[.,]\d)",
        r"(?<![\w-])(?=(?:[A-Z-]*\d){4})(?=[\d-]*[A-Z])[A-Z0-9]+(?:-[A-Z0-9]+)*(?![\w-])",
    )
)

# Contacts ----------------------------------------------------------------------------------------------------------

CONTACTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[^@\s,;:()<>]+@[^@\s,;:()<>]+\.[A-Za-z]{2,}",
        r"\b(?:https?://|www\.)[^\s,;()<>]+",
        r"(?<![\w.@])@\w{2,}",
        r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]\d)",
        r"(?<![\d-])(?:\+\d[\d\s().-]{6,18}\d|\(\d{2,5}\)\s?\d{3,4}[\s.-]?\d{3,4}|(?:1[\s.-])?\d{3}[\s.-]\d{3}[\s.-]\d{4})"
        r"(?!\d)",
        r"(?<![\d/.-])0\d{1,5}[ /-]\d{3,8}(?:[ -]\d{2,6}){0,2}(?![\d/.-]*\d)",
        r"(?<![\d/.-])\d{3}-\d{4}(?![\d-])",
        r"\b(?i:tel(?:ephone)?|phon(?:e|ed|ing)|call(?:ed|ing)?|ring|rang|fax|mobile|cell|whatsapp|sms|text(?:ed)?|"
        r"reach(?:ed)?)\b\.?:?\s+(?:(?i:me|us|him|her|them|back|number|no\.?|is|on|at|under|from|via)\s+){0,3}"
        r"\(?(?P<contact>\+?\d[\d ()/.-]{4,}\d)(?!\d)",
    )
)
