import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.masking import (
    MASK,
    is_secret_name,
    mask_argv,
    mask_json,
    mask_mapping,
    mask_text,
    mask_value,
)


def words(text):
    return text.split()


SECRET_NAMES = words("""
HF_TOKEN hf_token --hf-token HUGGING_FACE_HUB_TOKEN WANDB_API_KEY wandb_key apiKey api-key APIKEY
AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN password DB_PASSWORD db_passwd passwd
ray_redis_password GOOGLE_APPLICATION_CREDENTIALS Authorization auth_header cookie Set-Cookie
SSH_PRIVATE_KEY private_key authkey token authToken access_token mytoken DB_PWD SENTRY_DSN
sglang_api_key access_tokens client_secret secrets NCCL_PW --pw dbPw passw0rd P4SSW0RD my_passw
--webhook SLACK_WEBHOOK_URL MILES_WATCHDOG_ON_STALL --on-stall MYSQL_PWD
""")
HARMLESS_NAMES = words("""
tokenizer tokenizer_path max_tokens max_token_len num_key_value_heads key_padding_mask
keep_old_actor key_value_channels lora_rank author authors
eos_token eos_token_id pad_token num_tokens tokens
total_tokens token_ids skip_tokenizer_init input_key label_key metadata_key apply_chat_template
PWD OLDPWD keyboard monkey key forward_pass passes private_rss_bytes hub_private_repo KeyError
qk_layernorm group_query_attention max_tokens_per_gpu tokens_per_step NCCL_IB_HCA compass store_key
PWD OLDPWD OLD_PWD INIT_PWD num_pw pw_scale pw_conv passwordless keep_old_actor signature design
max_new_tokens key_padding encoder_attn_key_padding_mask group_key_len
token_level_loss missing_keys unexpected_keys AuthenticationError detoken reward_key eval_input_key
""")

SHAPES = {
    "openai": "sk-proj-abcdEFGH1234567890",
    "hugging face": "hf_abcdefghijklmnop",
    "github": "ghp_0123456789abcdefghij",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "slack": "xoxb-1234567890-abcdef",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n+/=\n-----END RSA PRIVATE KEY-----",
    "cut pem": "-----BEGIN PRIVATE KEY-----\nMIIEabc",
}

secrets = st.text(string.ascii_letters + string.digits, min_size=12, max_size=40).filter(
    lambda text: not text.isdigit()
)
secret_names = st.sampled_from(SECRET_NAMES).map(lambda name: name.strip("-"))


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_the_name_of_a_secret_is_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_harmless_name_is_left_alone(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_looks_like_a_secret_is_masked_under_any_name(shape):
    masked = mask_text(f"before {SHAPES[shape]} after")

    assert SHAPES[shape] not in masked
    assert "MIIE" not in masked
    assert MASK in masked


@given(secret_names, secrets)
def test_no_spelling_of_an_assignment_leaks(name, secret):
    for text in (
        f"{name}={secret}",
        f"export {name}='{secret}' other=1",
        f'{{"a": 1, "{name}": "{secret}"}}',
        f"Namespace(a=1, {name}='{secret}', b=2)",
        f"{name}: {secret}",
        f'log "{{\\"{name}\\": \\"{secret}\\"}}"',
        f'{name}="a b\\"{secret}"',
        f"python x.py --{name} {secret} --y",
        f"python x.py --{name} '{secret} more' --y",
        str(["python", f"--{name}", secret]),
        f"http://host/?a=b&{name}={secret}&c=d",
    ):
        assert secret not in mask_text(text), text


@given(secret_names, secrets)
def test_no_spelling_of_an_argument_leaks(name, secret):
    for argv in ([f"--{name}", secret], [f"--{name}={secret}"], [f"{name}={secret}"]):
        assert secret not in " ".join(mask_argv(["python", *argv, "last"]))


@given(secret_names, secrets)
def test_a_secret_in_a_mapping_is_masked_at_any_depth(name, secret):
    assert mask_mapping({name: secret}) == {name: MASK}
    assert secret not in json.dumps(mask_json({"a": [{"b": {name: [secret]}}]}))


@given(secrets)
def test_the_password_in_an_address_is_masked_and_the_host_kept(secret):
    assert mask_text(f"http://bob:{secret}@proxy:80/x") == f"http://{MASK}@proxy:80/x"


@given(secrets)
def test_headers_are_masked(secret):
    assert secret not in mask_text(f"Authorization: Bearer {secret}")
    assert secret not in mask_text(f"curl -H 'authorization: Basic {secret}'")
    assert secret not in mask_text(f"Cookie: a=b; session={secret}; c={secret}")


@given(st.text())
def test_masking_twice_is_masking_once(text):
    once = mask_text(text)

    assert mask_text(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'lm_head.weight'",
        "--max-tokens 4096 --tokenizer-path /models/qwen --num-key-value-heads 8",
        'File "/x/tokenizer.py", line 12, in encode',
        "Timed out waiting 1800000ms for recv operation to complete",
        "barrier: rank 3 key: default_pg/0//1",
        "--eos-token-id 151645 --input-key prompt --label-key=answer",
        "max_tokens=1024, keep_old_actor=True",
        '{"max_tokens": 5, "key": "model.layers.0", "keys": ["a"], "key_padding": "left"}',
        "python -u train.py --a b:c",
        "docker run -u 1000:1000 image",
        "http://10.0.0.1:3000/a and mail to a@b.c",
        "git+https://github.com/a/b@v1.0",
        "http://h:80/a@b",
        "http://h:80?x=a@b",
        "http://[::1]:80/a@b",
        "tcp://10.0.0.1:29500?rank=0&world_size=2&store_key=default_pg",
        "https://hooks.slack.com/docs and https://discord.com/api/v9",
        "invalid token id_151645.x and bad token embedding",
        "signature: (Tensor self, int dim)",
        "PWD=/root/miles OLDPWD=/root",
        "weights at http://10.0.0.1:30000/update_weights",
    ],
)
def test_what_a_diagnosis_needs_is_kept(text):
    assert mask_text(text) == text


def test_a_setting_under_an_ambiguous_name_is_kept_and_a_numeric_password_is_not():
    assert mask_value("vocab_key", "17") == "17"
    assert mask_value("use_token", "True") == "True"
    assert mask_value("password", "12345") == MASK


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "a.b-" * 50_000,
        '"' * 100_000,
        "key=" * 50_000,
        "--a " * 50_000,
        "http://" * 30_000,
        "\\" * 100_000,
        "-----BEGIN PRIVATE KEY-----" * 5_000,
    ],
)
def test_hostile_text_takes_no_longer_than_its_length(text):
    mask_text(text)


LEAKY = [
    "https://hooks.slack.com/services/T0001/B0001/{}",
    "https://discord.com/api/webhooks/123/{}",
    "https://x.webhook.office.com/webhookb2/{}@b/IncomingWebhook/c",
    "https://api.telegram.org/bot12345:{}/sendMessage",
    "https://a.blob.core.windows.net/c?sv=2020&sig={}%3D",
    "https://b.s3.amazonaws.com/k?X-Amz-Signature={}&b=1",
    "https://maps.example/api?key={}",
    "redis://:{}/with/slash@h:1/0",
    "redis://:pw/{}@h:1/0",
    "postgres://u:a@{}@h/db",
    "postgres://u:{}@b@h/db",
    "curl -u bob:{} -s http://h",
    "curl --user 'bob:{}' http://h",
    "['curl', '-u', 'bob:{}']",
    "x --webhook https://example.com/{} --y",
    '{{"passw0rd": "{}"}}',
    "MILES_WATCHDOG_ON_STALL=notify-all {}",
    "MILES_WATCHDOG_ON_STALL='notify-all {}' python x.py",
    "ValueError: bad token a1{}",
]


@pytest.mark.parametrize("text", LEAKY)
@given(secrets)
def test_no_address_option_or_command_leaks(text, secret):
    masked = mask_text(f"before {text.format(secret)} after")

    assert secret not in masked
    assert masked.startswith("before ")
    assert mask_text(masked) == masked


@given(secrets)
def test_what_tells_somebody_of_a_stall_is_masked_whole(secret):
    assert mask_value("MILES_WATCHDOG_ON_STALL", f"tell {secret}") == MASK
    assert mask_argv(["curl", "-u", f"bob:{secret}"]) == ["curl", "-u", f"bob:{MASK}"]
    assert mask_argv(["docker", "-u", "1000:1000"]) == ["docker", "-u", "1000:1000"]


plain_values = st.text(string.ascii_lowercase, min_size=3, max_size=12)
harmless_names = st.sampled_from([name for name in HARMLESS_NAMES if name != "authors"])


@given(harmless_names, plain_values)
def test_no_harmless_value_is_lost(name, value):
    for text in (
        f"{name}={value}",
        f"--{name} {value}",
        f'{{"{name}": "{value}", "key": "{value}"}}',
        f"http://host:80/x?{name}={value}",
    ):
        if "?key=" not in text and "?signature=" not in text:  # in an address they are secrets
            assert mask_text(text) == text
    assert mask_json({name: value}) == {name: value}
