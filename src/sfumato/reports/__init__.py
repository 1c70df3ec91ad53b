"""Reports: one offline HTML file, the JSON report, terminal output and notebook displays."""

from sfumato.reports.build import build_report
from sfumato.reports.codebook import CODEBOOK, README, codebook, readme
from sfumato.reports.columns import column_pictures
from sfumato.reports.document import Report
from sfumato.reports.page import leaving_report, report_html, report_json, write_report
from sfumato.reports.report_data import Audience, Bar, ColumnPicture, ColumnSummary, ReportData, published_manifest

__all__ = [
    "CODEBOOK",
    "README",
    "Audience",
    "Bar",
    "ColumnPicture",
    "ColumnSummary",
    "Report",
    "ReportData",
    "build_report",
    "codebook",
    "column_pictures",
    "leaving_report",
    "published_manifest",
    "readme",
    "report_html",
    "report_json",
    "write_report",
]
