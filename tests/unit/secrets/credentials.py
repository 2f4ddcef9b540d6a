"""What is a credential and what is none. Every value is made up, and made when the tests run, from parts that no
scanner takes for one."""

from __future__ import annotations

import random
import string

LETTERS, DIGITS, HEX = string.ascii_letters, string.digits, "0123456789abcdef"
UPPER = string.ascii_uppercase


def made(length: int, of: str = LETTERS + DIGITS, seed: int = 7) -> str:
    """Characters that look drawn by lot, the same at every run; of several sorts there is one of each."""
    drawn = random.Random(f"{seed} {length} {of}")  # noqa: S311  (not a secret)
    sorts = [sort for sort in (UPPER, string.ascii_lowercase, DIGITS) if set(sort) <= set(of)]
    chosen = [drawn.choice(sort) for sort in sorts] + [drawn.choice(of) for _ in range(length - len(sorts))]
    drawn.shuffle(chosen)
    return "".join(chosen)


def pem(kind: str = "RSA ", join: str = "\n", lines: int = 10) -> str:
    """A private key with its head and tail."""
    body = join.join(made(64, seed=n) for n in range(lines))
    return f"-----BEGIN {kind}PRIVATE KEY-----{join}{body}{join}-----END {kind}PRIVATE KEY-----"


JWT = f"eyJ{made(17)}.eyJ{made(40)}.{made(43)}"
# What is a credential, by kind: all of it must be masked. Where text stands around it, the second part is the secret.
VALUES: dict[str, list[str | tuple[str, str]]] = {
    "AWS access key": ["AKIA" + made(16, UPPER), "ASIA" + made(16, UPPER + DIGITS)],
    "AWS secret access key": [("aws_secret_access_key = {}", made(40))],
    "AWS Bedrock API key": ["ABSK" + made(110)],
    "Azure storage or service bus key": [
        ("AccountKey={};", made(86) + "=="),
        ("SharedAccessKey={}", made(43) + "="),
    ],
    "Azure shared access signature": [("https://x.blob.core.example/c?sv=1&sig={}", made(43) + "%3D")],
    "Azure client secret": [f"{made(3)}8Q~{made(34)}"],
    "Google API key": ["AIza" + made(35)],
    "Google OAuth secret": ["GOCSPX-" + made(28), "ya29." + made(60)],
    "DigitalOcean token": ["dop_v1_" + made(64, HEX)],
    "Alibaba Cloud access key": ["LTAI" + made(20)],
    "Anthropic API key": ["sk-ant-api03-" + made(93) + "AA", "sk-ant-" + made(30)],
    "OpenAI API key": [
        "sk-proj-" + made(74) + "T3BlbkFJ" + made(74),
        "sk-" + made(20) + "T3BlbkFJ" + made(20),
        "sk-svcacct-" + made(48),
    ],
    "API key of a language model": ["sk-" + made(48), "gsk_" + made(52), "r8_" + made(37), "xai-" + made(80)],
    "Hugging Face token": ["hf_" + made(34, LETTERS)],
    "GitHub token": [
        *(prefix + made(36) for prefix in ("ghp_", "gho_", "ghs_")),
        "github_pat_" + made(22) + "_" + made(59),
    ],
    "GitLab token": ["glpat-" + made(20), "gldt-" + made(20)],
    "npm token": ["npm_" + made(36), ("//registry.example/:_authToken={}", made(36, HEX))],
    "PyPI token": ["pypi-AgEIcHlwaS5vcmc" + made(70)],
    "Token of a package or image registry": ["rubygems_" + made(48, HEX), "dckr_pat_" + made(27)],
    "Atlassian token": ["ATATT3" + made(180)],
    "Slack token": [f"xoxb-{made(12, DIGITS)}-{made(12, DIGITS)}-{made(24)}", "xapp-1-" + made(40)],
    "Webhook address": [
        ("https://hooks.slack.com/services/{}", f"T{made(9)}/B{made(9)}/{made(24)}"),
        ("https://discord.com/api/webhooks/123456789012345678/{}", made(68)),
    ],
    "Discord bot token": ["M" + made(23) + "." + made(6) + "." + made(27)],
    "Telegram bot token": [made(9, "123456789") + ":AA" + made(33)],
    "Stripe key": ["sk_live_" + made(24), "rk_test_" + made(99)],
    "Square secret": ["sq0csp-" + made(43)],
    "Shopify token": ["shpat_" + made(32, HEX)],
    "SendGrid API key": ["SG." + made(22) + "." + made(43)],
    "Mail service key": [made(32, HEX) + "-us12", "key-" + made(32, HEX)],
    "Twilio key": ["SK" + made(32, HEX)],
    "Service token": [
        "dapi" + made(32, HEX),
        "hvs." + made(90),
        "glsa_" + made(32) + "_" + made(8, HEX),
        "ntn_" + made(45),
        "AGE-SECRET-KEY-1" + made(58, UPPER + DIGITS),
    ],
    "Terraform Cloud token": [made(14) + ".atlasv1." + made(67)],
    "Webhook signing secret": ["whsec_" + made(32)],
    "Vouchgate token": [f"{prefix}_{made(16, HEX)}_{made(43)}" for prefix in ("vg", "gg")],
    "Private key": [
        pem(),
        pem(""),
        pem("OPENSSH "),
        pem("ENCRYPTED "),
        pem(join="\\n"),
        pem(join="\n    "),
        pem(join="\n> "),
        pem(join=" "),
    ],
    "JSON web token": [JWT],
    "Password in an address": [
        ("postgres://bob:{}@db.acme.example/orders", "hunter2"),
        ("https://build:{}@git.acme.example/a.git", made(30)),
        ("redis://:{}@cache:6379/0", "s3cr3t"),
    ],
    "Name and password": [
        ("user ada / pass {}", "Harbour#2291kk"),
        ("Login: ada, password: {}", "tr0mb0ne-9"),
    ],
    "Password named after it": [
        ("The portal uses {} as password.", "Harbour!2025-Gate"),
        ("root signs in with {} as its passphrase", "quince!harbour-77"),
        ("The portal uses {} as its password", "sha-256-Harbour!25"),
    ],
    "PIN": [
        ("The PIN of the debit card is {}.", "4482"),
        ("PIN code for the cellar: {}", "90417"),
    ],
    "Authorization header": [
        ("curl -H 'Authorization: Bearer {}' x", made(40)),
        ("Basic {}", made(31) + "="),
    ],
    "password": [
        ("password: {}", "hunter2"),
        ("The password is {}.", "hunter2"),
        ("the wifi password of the flat is {}", "hunter2-Harbour-77"),
        ("the admin password is '{}'", "Tr0ub4dor&3"),
        ("DB_PASSWORD={}", "s3cr3tPa55"),
        ('{{"password": "{}"}}', "correct1horse"),
        ("passwd: {}", "P@ssword"),
        ("log in as bob with password {}", "zX9!kk2p"),
        ("the password for the admin account is {}", "hunter22"),
        ("The database password was changed to {}", "Winter2024!"),
        ("passphrase := '{}'", "blue42horse"),
        ("password: {}", "48201957"),
        ("password is password: {}", "hunter2"),
        ("The root password for db1 has been changed to {}", "Winter2024!"),
        ("Das Passwort lautet {}", "Sommer!2024x"),
        ("Das Passwort für die Datenbank ist {}", "Sommer!2024x"),
        ("Le mot de passe de la base est {}", "Neige42!bleu"),
        ("La contraseña del servidor es {}", "Verano88$rojo"),
        ("<db.password>{}</db.password>", "Harbour!22x"),
        ("pw: {}", "Harbour!22x"),
        ("\n| host | user | Password |\n|---|---|---|\n| db1 | ada | `{}` |\n\n", "Harbour!22x"),
        ("\nhost | DB password\n--- | ---\ndb1 | {}\n\n", "hunter2x"),
    ],
    "key or token": [
        ("api_key = {}", made(24)),
        ("API_KEY={}", "sk-secret-key-" + string.ascii_lowercase),
        ("apiKey: '{}'", made(20)),
        ("The API key is {}, use it for staging.", made(24)),
        ("client_secret: {}", made(32)),
        ("SECRET_KEY_BASE={}", made(64, HEX)),
        ("The token to use is {}", made(30)),
        ("token: {}", made(40, HEX)),
        ("API key (staging): {}", made(24)),
        ("\n| service | API keys |\n|---|---|\n| mail | {} |\n\n", made(24)),
    ],
}

# Talk about credentials, and what only looks like one.
HARMLESS = [
    "Das Passwort ist base64-kodiert",
    "Das Passwort für den Admin ist im Tresor1 hinterlegt",
    "Le mot de passe est haché avec argon2id",
    "La contraseña es obligatoria desde v2.1",
    "The password for db1 has been set to expire",
    "API key (see ADR-0012): required",
    "<token>string</token> and Array<token>item1234567890abc",
    "\n| Setting | Password |\n|---|---|\n| length | min 12 |\n| hash | argon2id |",
    "\n| Token | Meaning |\n|---|---|\n| RS256 | signed with key4567890abcdef |\n\nThe end | is n0tInTheTable",
    *(
        "password: required",
        "The password is hashed with argon2id",
        "password: PBKDF2-HMAC-SHA256",
        "Postgres is set to scram-sha-256 for password auth.",
        "The service uses SCRAM-SHA-256 for password authentication.",
        "The service uses `PBKDF2-HMAC-SHA512` as its password",
        "Vault uses argon2id-v1.3 as its password scheme.",
        "token: RS256",
    ),
    *(
        "The token is base64-encoded",
        "token: OAuth2",
        "password: ${DB_PASSWORD}",
        "password: <your password>",
    ),
    *("api_key = os.environ['API_KEY2']", "token=settings.api_token_v2", "password: 12 characters"),
    *(
        "password is at least 12 characters",
        "access token: 15-minute",
        "The secret is stored in /run/secrets/db1",
    ),
    *("PASSWORD_FILE=/run/secrets/db1", "password: user@acme.example", "token: 2026-01-04", "token: SHA-256"),
    *("The token is valid until 2026-01-04T10:00:00Z", "API key: see ADR-0012", "Refresh token: 90-day"),
    *("token limit: 8192", "tokens: 128k", "credentials: IAM-role-based", "password: kubernetes/secret1"),
    *(
        "token: v2.1.0-beta3",
        "the token was GPT-4o-mini's",
        "secret is rotated every 90days",
        "password: ********",
    ),
    *("password: xxxxxxx1", "http://user:password@host/", "https://x-access-token:${TOKEN1}@github.com/a/b"),
    *("See PR#123: token=ab12", "API key is limited to 100req/min", "The API key is in 1Password"),
    *(
        "password: min_length=12",
        "master key: AES-256-GCM",
        "access key: Ctrl+Shift+P",
        "token: issue-1234-fix",
    ),
    *("token is bound to tenant-42-eu-west-1", "auth token: HS256/RS256", "password is 8+ characters"),
    *("next_page_token=CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA", "token: 20260104T100000Z"),
    "The token is 0x6B175474E89094C44Da98b954EedeAC495271d0F on the main chain.",
    "-----BEGIN PRIVATE KEY----- is the first line of a PEM file of a key in PKCS8.",
    "Keys of AWS begin with AKIA, those of GitHub with ghp_, those of Stripe with sk_live_.",
    "commit 5eb04d8f675d8a9368db8f233a33951c5a83da39 and 5eb04d8f fixed it, see ADR-0012",
    "The id is 123e4567-e89b-12d3-a456-426614174000 or 01J9ZQ8K6T4W5X7Y8Z9A0B1C2D.",
    "sha256:" + made(64, HEX) + " and sha512-" + made(86) + "==",
    "data:image/png;base64," + made(900, LETTERS + DIGITS + "+/"),
    "doi:10.1000/xyz123-ABC, https://doi.org/10.1038/s41586-020-2649-2 and arXiv:2105.09613v2",
    "https://docs.acme.example/a/B1c2D3e4F5g6H7i8J9k0L1m2N3o4P5q6?page=2#section-3",
    "NotificationDeliveryService.retry(maximumAttemptsPerOwnerAndSink=8)",
]
