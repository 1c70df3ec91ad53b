"""The app: a local web service and browser pages for the whole path from a file to a report.

The recipe file is the truth. Pages edit its text; what was made here runs on the command line unchanged.
"""
