"""Security of HTTP services: Host check, security headers, sign-in, sessions, CSRF protection and static files.

The app and the server share this package. It stands on Starlette and knows nothing about data.
"""

from sfumato.web.csrf import CsrfCheck
from sfumato.web.headers import SecurityHeaders
from sfumato.web.host_check import HostCheck, local_hosts
from sfumato.web.limits import BodyLimit
from sfumato.web.listening import listening_socket
from sfumato.web.sessions import BrowserSession, BrowserSessions, OneTimeTokens, session_cookie
from sfumato.web.static_files import StaticBundle, front_end

__all__ = [
    "BodyLimit",
    "BrowserSession",
    "BrowserSessions",
    "CsrfCheck",
    "HostCheck",
    "OneTimeTokens",
    "SecurityHeaders",
    "StaticBundle",
    "front_end",
    "listening_socket",
    "local_hosts",
    "session_cookie",
]
