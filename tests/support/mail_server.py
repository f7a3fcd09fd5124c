"""A real SMTP server (aiosmtpd) that does as its one argument, a JSON object, says:

  certificate, key   PEM files; with them it speaks TLS: "security" is "tls" or "starttls"
  login              {"user": …, "password": …, "token": …}: nobody else may send
  mechanisms         of PLAIN, LOGIN, XOAUTH2: those that it offers
  answers            {"mail" | "rcpt ADDRESS" | "end": [line, …]}: instead of its own, one for each time; with "forever" at
                     the end the last one stays
  drops              [step, …]: where the next connections end, one each: connect, ehlo, starttls, auth, mail, rcpt, data,
                     end (with the mail taken, and no answer)
  size               of the largest mail
  smtputf8           true: it takes addresses of any script
  port               0: any

It writes "port N", then "session N" for each connection and "mail JSON" for each mail that it was given, as Python's own
email package reads it.
"""
import asyncio
import base64
import email
import email.policy
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

told = json.loads(sys.argv[1])
answers = {step: list(lines) for step, lines in told.get("answers", {}).items()}
drops = list(told.get("drops", []))
sessions = 0


def tell(word, value):
    print(word, value, flush=True)


def answer_to(step):
    lines = answers.get(step, [])
    if lines and lines[-1] == "forever":
        return lines[0] if len(lines) == 2 else lines.pop(0)
    return lines.pop(0) if lines else None


def read(envelope, server):
    raw = envelope.original_content
    message = email.message_from_bytes(raw, policy=email.policy.default)
    parts = [part for part in message.walk() if not part.is_multipart()]
    defects = [str(defect) for part in message.walk() for defect in part.defects]
    lines = raw.split(b"\r\n")

    def text_of(kind):
        text = next((part.get_content() for part in parts if part.get_content_type() == kind), None)
        return text and text.replace("\r\n", "\n")

    picture = next((part for part in parts if part.get_content_type() == "image/jpeg"), None)
    return {
        "session": server.number,
        "from": envelope.mail_from,
        "to": envelope.rcpt_tos,
        "headers": [[name, str(value)] for name, value in message.items()],
        "shape": [part.get_content_type() for part in message.walk()],
        "text": text_of("text/plain"),
        "html": text_of("text/html"),
        "picture": base64.b64encode(picture.get_content()).decode() if picture else None,
        "picture_id": picture["Content-ID"] if picture else None,
        "defects": defects,
        "longest_line": max(len(line) for line in lines),
        "has_bare_breaks": any(b"\r" in line or b"\n" in line for line in lines),
        "is_ascii": raw.isascii(),
    }


class Handler:
    async def auth_XOAUTH2(self, server, args):
        said = base64.b64decode(args[1])
        wanted = f"user={told['login']['user']}\x01auth=Bearer {told['login'].get('token')}\x01\x01".encode()
        if said == wanted:
            return AuthResult(success=True)
        await server.challenge_auth('{"status":"401","schemes":"bearer","scope":"https://mail.example.com/"}')
        return AuthResult(success=False, handled=False)

    async def handle_MAIL(self, server, session, envelope, address, options):
        line = answer_to("mail")
        if line is None:
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return line or "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        line = answer_to("rcpt " + address)
        if line is None:
            envelope.rcpt_tos.append(address)
        return line or "250 OK"

    async def handle_DATA(self, server, session, envelope):
        line = answer_to("end")
        if line is None:
            tell("mail", json.dumps(read(envelope, server)))
            server.ends_at("end")
        return line or "250 OK"


def authenticator(server, session, envelope, mechanism, data):
    login = told["login"]
    is_right = isinstance(data, LoginPassword) and data.login == login["user"].encode() and \
        data.password == login.get("password", "").encode()
    return AuthResult(success=is_right, handled=False)


class Server(SMTP):
    """Ends connections where it is told to."""

    number = 0
    drop = None

    def connection_made(self, transport):
        global sessions
        if self.number == 0:  # after STARTTLS it is made again
            sessions += 1
            self.number = sessions
            self.drop = drops.pop(0) if drops else None
            tell("session", sessions)
        super().connection_made(transport)
        if self.drop == "connect":
            transport.abort()

    def ends_at(self, step):
        if self.drop == step:
            self.transport.abort()
        return self.drop == step


def dropping(command):
    async def run(self, arg):
        if not self.ends_at(command.lower()):
            await getattr(SMTP, "smtp_" + command)(self, arg)
    return run


for name in ("EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA"):
    setattr(Server, "smtp_" + name, dropping(name))


def make_server():
    is_starttls = told.get("security") == "starttls"
    unwanted = {"PLAIN", "LOGIN", "XOAUTH2"} - set(told.get("mechanisms", ["PLAIN", "LOGIN", "XOAUTH2"]))
    return Server(
        Handler(),
        hostname="mail.test",
        data_size_limit=told.get("size", 1 << 25),
        enable_SMTPUTF8=told.get("smtputf8", False),
        tls_context=context if is_starttls else None,
        require_starttls=is_starttls,
        auth_required="login" in told,
        auth_require_tls=is_starttls,
        auth_exclude_mechanism=sorted(unwanted),
        authenticator=authenticator,
    )


context = None
if "certificate" in told:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(told["certificate"], told["key"])


async def serve():
    loop = asyncio.get_running_loop()
    implicit = context if told.get("security") == "tls" else None
    server = await loop.create_server(make_server, "127.0.0.1", told.get("port", 0), ssl=implicit)
    tell("port", server.sockets[0].getsockname()[1])
    await server.serve_forever()


logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
asyncio.run(serve())
