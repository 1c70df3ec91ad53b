"""The account given to a person: one offline HTML file, its JSON twin, and the pictures in both."""

from tacit.report.account import Account, Audience, Bar, ColumnPicture
from tacit.report.columns import column_pictures
from tacit.report.page import report_html, report_json, write_report

__all__ = [
    "Account",
    "Audience",
    "Bar",
    "ColumnPicture",
    "column_pictures",
    "report_html",
    "report_json",
    "write_report",
]
