"""Secrets out of everything that is stored: by the name of a value, and by its shape.

Two questions are asked of every value. *Is its name that of a secret?* `HF_TOKEN`, `--api-key`,
`wandb_key`; but not `tokenizer`, `max_tokens`, `num_key_value_heads`. *Does it look like one?*
`hf_…`, `sk-…`, a private key, a password inside an address; whatever it is called.

What is masked is masked whole: neither its length nor its ends are kept. In doubt a value is
masked: a lost setting costs a question, a published password costs more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

MASK = "<masked>"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name is cut into words at `_`, `-`, `.`, spaces and where case changes; one of these words
# makes it a secret's.
_SECRET_WORDS = _words("""
    secret secrets password passwords passwd passw passwrd passphrase passcode credential
    credentials cred creds
    auth authorization authentication authkey cookie cookies apikey apikeys accesskey secretkey
    privatekey sas dsn webhook webhooks
    """)
# Commands that tell somebody something: mostly by an address that is a secret as a whole.
_SECRET_NAMES = frozenset({"miles_watchdog_on_stall", "on_stall", "on-stall"})
_SECRET_ENDINGS = ("password", "passwd", "secret", "token", "apikey", "credentials")
# Words that mean a secret beside some words and something harmless beside others.
_SECRET_BESIDE_KEY = _words(
    "access account api app aws azure encryption gcp hub openai service signing ssh wandb"
)
_HARMLESS_BESIDE_KEY = _words("""
    attention attn batch bias cache column columns compare data dataset dict dim embedding error
    eval extra feature field fields file filter foreign group head heads id ids image index info
    input inputs item json label layer layers layernorm lora map mapping meta metadata metric
    missing multimodal norm num output padding pad path pg position primary prompt proj projection
    qk query rank record reduce rendezvous reward row sample schema shard sort state store target
    tensor tool unexpected unique valid value values weight weights
    """)
_HARMLESS_BESIDE_PRIVATE = _words(
    "address bytes dirty host interface ip memory network port repo rss use"
)
_SECRET_BESIDE_TOKENS = _words("access api hf hub personal refresh session")
_HARMLESS_BESIDE_TOKEN = _words("""
    add audio avg batch begin block bos budget bucket chat chunk cls count cu cut decode drop embed
    embedding end eod eos eot expert expand extra fill first generate global ids ignore image
    index input is last len length level limit logprob logprobs loss mask max mean min new num
    number output pad padding parallel per prefill predict prefix prompt ratio reserved response
    reward sampling scale sep sequence size special start stop think total truncate type unk
    video vision vocab wise
    """)
# Beside these `pw` is no password: pairwise, pointwise, power.
_HARMLESS_BESIDE_PW = _words("""
    coef conv count factor index kernel limit linear loss max mean min num scale total weight
    """)
_HARMLESS_BESIDE_PWD = _words("current init initial job old start work")
_PASSWORD_IN_DIGITS = re.compile(r"p[a4@][s5$]{2}w[o0]?r?d(?!less)", re.IGNORECASE)
_SECRET_BESIDE_PASS = _words("db ftp git http imap mysql proxy redis smtp sudo user")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOTHING = re.compile(r"(?:\\?[\"'])?(?:none|null|true|false|)(?:\\?[\"'])?", re.IGNORECASE)
_NUMBER = re.compile(r"[\"']?[+-]?\d{1,9}(?:\.\d{0,9})?(?:e[+-]?\d{1,3})?[\"']?", re.IGNORECASE)

_SHAPES = (
    re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
        r"[^-]*(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z|-)"
    ),
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"\bhf_[A-Za-z0-9]{8,}"),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{8,}"),
    re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{8,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    re.compile(r"\bAIza[A-Za-z0-9_-]{30,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"),
    re.compile(r"\bwandb_v1_[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<=/bot)\d{5,16}:[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<![A-Za-z0-9:.])\d{8,12}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
)
# A shell command without quotes, as `env` prints it: it ends with the line.
_ON_STALL = re.compile(r"(\bMILES_WATCHDOG_ON_STALL=)(?!<masked>)(?![\"'\s\\])[^\n\0]+")
# Addresses whose path is the secret; host and the first part of the path say enough.
_WEBHOOK = re.compile(
    r"(\bhttps?://(?:"
    r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)"
    r"|(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks"
    r"|[a-z0-9-]{1,63}\.webhook\.office\.com"
    r"|outlook\.office(?:365)?\.com/webhook"
    r"|chat\.googleapis\.com/v1/spaces"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot"
    r"|events\.pagerduty\.com/integration"
    r")/)(?!<masked>)[^\s\"'<>\\]+",
    re.IGNORECASE,
)
# `?key=`: a lone `key` is a secret's in an address only.
_QUERY = re.compile(
    r"([?&;](?:key|code|(?:[\w.-]{0,40}[-_])?(?:sig|signature))=)"
    r"(?!<masked>)[^\s&;#\"'<>\\]+",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>]{1,4000}", re.IGNORECASE)
# `curl -u user:password`; but `docker run -u 1000:1000`.
_USER_OPTION = re.compile(
    r"((?<![\w-])(?:-u|--(?:proxy-)?user)(?:\\?[\"'])?(?:\s*,\s*|\s+|=)(?:\\?[\"'])?"
    r"(?!\d+:\d+(?!\S))[^\s:\"'/\\]{0,100}:)(?!<masked>|//)[^\s\"'\\]+"
)
_BAD_TOKEN = re.compile(
    r"(\b(?:bad|invalid|expired|revoked|wrong)\s+"
    r"(?:(?:(?:access|api|auth)\s+)?token|(?:access|api|auth)\s+key|password|credentials?)"
    r"\s*:?\s+[\"']?)(?=[A-Za-z_+/=-]{0,80}\d)(?=[\d_+/=-]{0,80}[A-Za-z])"
    r"[A-Za-z0-9_+/=-]{8,}(?![A-Za-z0-9_.+/=-])",
    re.IGNORECASE,
)
# One value as texts write it: quoted in JSON or in Python, also inside a quoted text, or bare.
_VALUE = (
    r'(?P<value>"(?:\\.|[^"\\])*"?'
    r"|'(?:\\.|[^'\\])*'?"
    r"|\\\"(?:(?!\\\").)*(?:\\\")?"
    r"|[^\s\"',;&)\]}]+)"
)
_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9_.\-]{0,200})"
_SCHEME = re.compile(r"\b(bearer|basic)(\s+)[^\s\"'`,;]+", re.IGNORECASE)
# Up to the last `@` of the authority; a password may hold `/` and `@` although it should not.
_URL_USER = re.compile(
    r"\b([a-z][a-z0-9+.-]{1,20}://)"
    r"(?:(?::|[^\s/@:\[\"'<>?#]{1,300}:(?!\d{1,5}[/?#]))(?:(?!://)[^\s\"'<>,;]){1,500}|[^\s/?#\"'<>]{1,500})@",
    re.IGNORECASE,
)
_COOKIE_HEADER = re.compile(r"(?P<head>\b(?:set-)?cookie\s*:\s*)[^\r\n\"']+", re.IGNORECASE)
_PHRASE = re.compile(
    r"(?P<head>\b(?:api|access|secret|private|ssh)\s+key\s{0,4}[=:]\s{0,4})" + _VALUE, re.IGNORECASE
)
# `name=value`, `name: value`, `"name": "value"`, `Namespace(name='value')`.
_ASSIGNMENT = re.compile(
    rf"(?P<head>(?<![A-Za-z0-9_.])-{{0,2}}{_NAME}(?:\\?[\"'])?\s{{0,4}}[=:]\s{{0,4}})" + _VALUE
)
# `--name value`, `"--name", "value"`.
_OPTION = re.compile(rf"(?P<head>(?<![\w\-])--?{_NAME}(?:\\?[\"'])?(?:\s*,\s*|\s+)(?!-))" + _VALUE)

_USER_OPTIONS = ("-u", "--user", "--proxy-user")
_USER_AND_PASSWORD = re.compile(r"^(?!\d+:\d+$)([^:/]*:)(?!//).+", re.DOTALL)

# Set once by the settings; replaced whole, so a reader sees the old ones or the new.
_more_names: tuple[str, ...] = ()

_Secrecy = Literal["open", "unless a number", "always"]


def hide_names_with(fragments: Sequence[str]) -> None:
    """From now on treat every name that contains one of these as a secret's, in this process.

    Args:
        fragments: In any case; replaces those of the call before.
    """
    global _more_names
    _more_names = tuple(fragment.lower() for fragment in fragments if fragment)


def is_secret_name(name: str) -> bool:
    """Whether a value of this name must not be stored.

    Args:
        name: A variable, flag, header, key or attribute, in any spelling.
    """
    return _secrecy(name) != "open"


def mask_value(name: str, value: str) -> str:
    """The value as it may be stored under this name.

    Booleans, `None` and the empty text are kept whatever their name is; so are numbers of at
    most nine digits under a name with `token` or `key`: they are settings, and the diagnosis may
    rest on them.
    """
    return MASK if _must_hide(name, value) else mask_text(value)


def mask_mapping(values: Mapping[str, str]) -> dict[str, str]:
    """A copy, in the same order, that may be stored."""
    return {name: mask_value(name, value) for name, value in values.items()}


def mask_argv(argv: Sequence[str]) -> list[str]:
    """A command line, argument by argument, that may be stored.

    Knows `--name value`, `--name=value`, `-name value` and `NAME=value`.
    """
    masked: list[str] = []
    option = ""
    for argument in argv:
        name, equals, value = argument.partition("=")
        is_option = argument.startswith("-") and not _NUMBER.fullmatch(argument)
        if option in _USER_OPTIONS and not is_option and ":" in argument:
            masked.append(_USER_AND_PASSWORD.sub(rf"\1{MASK}", argument))
        elif option and not is_option:
            masked.append(mask_value(option, argument))
        elif equals and re.fullmatch(r"-{0,2}[\w.\-]+", name):
            masked.append(f"{name}={mask_value(name, value)}")
        else:
            masked.append(mask_text(argument))
        option = argument if is_option and not equals else ""
    return masked


def mask_text(text: str) -> str:
    """Free text (a log line, a command, JSON, a printed value) that may be stored.

    Masks every value that looks like a secret, and every value that the text assigns to a
    secret's name. Runs in time proportional to the length of the text.
    """
    for shape in _SHAPES:
        text = shape.sub(MASK, text)
    text = _ON_STALL.sub(lambda found: found[1] + MASK, text)
    text = _WEBHOOK.sub(lambda found: found[1] + MASK, text)
    text = _SCHEME.sub(lambda found: found[1] + found[2] + MASK, text)
    text = _URL_USER.sub(lambda found: f"{found[1]}{MASK}@", text)
    text = _IN_ADDRESS.sub(lambda found: _QUERY.sub(rf"\1{MASK}", found[0]), text)
    text = _USER_OPTION.sub(lambda found: found[1] + MASK, text)
    text = _BAD_TOKEN.sub(lambda found: found[1] + MASK, text)
    text = _COOKIE_HEADER.sub(lambda found: found["head"] + MASK, text)
    text = _PHRASE.sub(lambda found: found["head"] + _quoted_mask(found["value"]), text)
    text = _ASSIGNMENT.sub(_masked_assignment, text)
    return _OPTION.sub(_masked_assignment, text)


def mask_json(value: object, name: str = "") -> object:
    """Plain data (dicts, lists, scalars) that may be stored, of the same form.

    Args:
        value: What `json.loads` returns.
        name: The key it stands under, "" at the top. A list's items stand under its key.
    """
    if isinstance(value, dict):
        return {key: mask_json(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_json(item, name) for item in value]
    return mask_value(name, value) if isinstance(value, str) else value


def _must_hide(name: str, value: str) -> bool:
    secrecy = _secrecy(name)
    if secrecy == "open" or _NOTHING.fullmatch(value):
        return False
    return secrecy == "always" or not _NUMBER.fullmatch(value)


def _secrecy(name: str) -> _Secrecy:
    if _more_names and any(fragment in name.lower() for fragment in _more_names):
        return "always"
    if name.lstrip("-").lower() in _SECRET_NAMES or _PASSWORD_IN_DIGITS.search(name):
        return "always"
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in ("error", "exception", "warning"):
        return "open"  # `KeyError: 'lm_head.weight'` says what is missing
    if any(word in _SECRET_WORDS for word in words):
        return "always"
    return "unless a number" if any(_is_secret(word, set(words)) for word in words) else "open"


def _is_secret(word: str, words: set[str]) -> bool:
    others = words - {word}
    if word in ("key", "keys"):
        # A lone `key` is half of every mapping (`key: model.layers.0`).
        beside_secret = bool(others & _SECRET_BESIDE_KEY)
        return beside_secret or (bool(others) and not others & _HARMLESS_BESIDE_KEY)
    if word == "token":
        return not others & _HARMLESS_BESIDE_TOKEN
    if word == "tokens":
        return bool(others & _SECRET_BESIDE_TOKENS)
    if word == "private":
        return not others & _HARMLESS_BESIDE_PRIVATE
    if word == "pw":
        return not others & _HARMLESS_BESIDE_PW
    if word == "pwd":
        return bool(others - _HARMLESS_BESIDE_PWD)  # `PWD` is the working directory
    if word == "pass":
        return bool(others & _SECRET_BESIDE_PASS)
    return word.endswith(_SECRET_ENDINGS) and word not in ("subtoken", "detoken", "pretoken")


def _masked_assignment(found: re.Match[str]) -> str:
    if not _must_hide(found["name"], found["value"]):
        return found[0]
    return found["head"] + _quoted_mask(found["value"])


def _quoted_mask(value: str) -> str:
    quote = '\\"' if value.startswith('\\"') else value[0] if value[0] in "\"'" else ""
    return f"{quote}{MASK}{quote}"
