"""Other languages than English: told, hedges found, contradictions and stances told by the words of their files."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.running.hangs import given_up_after
from vouchgate.ingest.check import ReadClaim
from vouchgate.ingest.checks.hedge import HedgeDetector, judge
from vouchgate.ingest.checks.language import judge as judge_language
from vouchgate.ingest.citations import given_citation
from vouchgate.ingest.claims.citation import CitationType
from vouchgate.ingest.claims.claim import Claim, MemoryType, Source
from vouchgate.ingest.claims.source import Found, Held, Stance, Standing
from vouchgate.ingest.contradictions.glossed import contradicted_in_another_language
from vouchgate.ingest.data.policy_file import load_policy
from vouchgate.ingest.dedup.relation import Relation, relation
from vouchgate.ingest.hedges.languages import hedges_in
from vouchgate.ingest.language.languages import Language, load_languages
from vouchgate.ingest.language.terms import language_of
from vouchgate.ingest.language.words import tokens
from vouchgate.ingest.support.holding import hold

POLICY = load_policy()
DETECTOR = HedgeDetector(POLICY.lexicon)


def claim(content: str) -> Claim:
    source = Source.AI_SYNTHESIS
    return Claim(
        content=content, owner_id="ann", memory_type=MemoryType.FACT, asserted_source=source, source=source
    )


HEDGED = """
de personal_speculation Ich glaube, der Zwischenspeicher ist alt.
de admitted_uncertainty Es ist noch unklar, wer das freigegeben hat.
de undecided_suggestion Wir könnten die Tabelle teilen.
de undecided_suggestion Wir koennten die Tabelle teilen.
de technical_hedge Unter Last kann die Anfrage manchmal scheitern.
de approximation Der Import dauert etwa 40 Minuten.
de no_hedge Wir konnten die Tabelle teilen.
de no_hedge Ana sagte: „Ich glaube, der Zwischenspeicher ist alt.“
de no_hedge Der Knopf heißt „Vielleicht später“.
de personal_speculation Der Zwischenspeicher ist „vermutlich“ alt.
fr personal_speculation Je pense que le cache est périmé.
fr admitted_uncertainty Je ne sais pas si la clé sert encore.
fr undecided_suggestion Et si on découpait la table ?
fr technical_hedge La requête peut parfois échouer.
fr approximation L'import dure environ 40 minutes.
fr no_hedge La fuite de mémoire est corrigée.
de personal_speculation Der Port ist _vielleicht_ offen, und __das__ reicht.
de no_hedge Der Schalter ist_vielleicht_offen ist an, und der alte ist es nicht.
de no_hedge Renewed CA certificate in staging; CA bundle path: /etc/ssl/certs.
de no_hedge Set MAG sensor to 3, says the CA of San Jose.
de no_hedge Die CA läuft 2027 ab, und das ist so.
de approximation Der Import dauert ca. 40 Minuten, nicht mehr.
es personal_speculation Creo que la caché está vieja.
es admitted_uncertainty No sé si la clave se usa todavía.
es no_hedge La clave no se usa y está borrada.
es undecided_suggestion Podríamos dividir la tabla.
es technical_hedge La consulta puede fallar a veces.
es approximation La importación tarda unos 40 minutos.
pt personal_speculation Acho que o cache está velho.
pt admitted_uncertainty Nao sei se a chave ainda é usada.
pt no_hedge O usuário disse que não sabe dirigir.
zh personal_speculation 我觉得缓存已经过期。
zh admitted_uncertainty 目前不清楚是谁批准的。
zh no_hedge 王鹏说：“我觉得缓存已经过期。”
zh no_hedge 概率模型的权重保存在 model.bin 里。
ja personal_speculation キャッシュは古いと思います。
ja technical_hedge 高負荷時にはクエリが遅くなることがある。
ja approximation 移行には約４０分かかる。
en no_hedge Per the notes of de Vries, the la Mancha server is gone.
fr admitted_uncertainty J'ignore l'origine d'un bug.
en no_hedge The El Paso office opened, and the die is cast.
"""
MIXED = "The cache is stale. Ich glaube, das ist der Fehler. The fix is merged."


def rows(table: str) -> list[list[str]]:
    return [line.split(" ", 2) for line in table.strip().splitlines()]


@pytest.mark.parametrize(("code", "expected", "text"), rows(HEDGED))
def test_hedges(code: str, expected: str, text: str) -> None:
    finding = judge(DETECTOR.detect(text))
    assert finding.code == expected
    words = finding.facts.get("words", [])
    assert words == list(dict.fromkeys(text[span.start : span.end] for span in finding.spans))


def test_a_sentence_of_another_language_among_english_ones() -> None:
    (match,) = DETECTOR.detect(MIXED)
    assert match.text == "Ich glaube"
    assert DETECTOR.detect(f"a\u0301 {MIXED}")[0].text == "Ich glaube"


def test_a_policy_of_before_reads_a_text_as_it_did_then() -> None:
    before = POLICY.lexicon.model_copy(update={"languages": {}})
    assert HedgeDetector(before).detect(MIXED) == ()
    assert "languages" not in before.model_dump()
    policy = POLICY.model_copy(update={"lexicon": before})
    assert not list(judge_language(ReadClaim(claim("Кэш устарел и больше не нужен."), (), (), (), policy)))


@pytest.mark.parametrize("code", load_languages())
def test_every_file_reads_and_tells_its_language(code: str) -> None:
    language = load_languages()[code]
    assert {phrase.kind for phrase in language.phrases} == set(language.hedges)
    assert language.quotes.pattern != "(?!)"
    assert language.glossary[1]


@pytest.mark.parametrize(
    ("phrases", "why"),
    [
        ({"personal_speculation": ("{nobody} thinks",)}, "'{nobody}' is no word and no word list"),
        ({"personal_speculation": ("a||b",)}, "'' is no word"),
        ({"personal_speculation": ("ja?",)}, "would match no words"),
        ({"guessing": ("x",)}, "no category 'guessing'"),
    ],
)
def test_what_cannot_be_read_is_named(phrases: dict[str, tuple[str, ...]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        assert Language.model_validate({"name": "Other", "hedges": phrases}).phrases


def test_a_language_is_a_table_of_words() -> None:
    made = {
        "name": "Other",
        "function": ["ik", "het"],
        "hedges": {"personal_speculation": ["{ik} ... denk*"]},
    }
    other = Language.model_validate({**made, "words": {"ik": ["ik", "wij"]}})
    text = "wij hebben lang denkende. ik, denk"
    ((start, end),) = other.find_hedges(text)["personal_speculation"]
    assert text[start:end] == "wij hebben lang denkende"
    assert hedges_in("Ich glaube das.", {}) == []


@pytest.mark.parametrize("code", ["de", "ja"])
def test_phrases_are_found_as_by_one_expression_that_has_them_all(code: str) -> None:
    language, chosen = load_languages()[code], Random(code)  # noqa: S311  (no secret)
    whole = {
        kind: re.compile("|".join(phrase.pattern for phrase in language.phrases if phrase.kind == kind))
        for kind in language.hedges
    }
    phrases = [phrase for of_kind in language.hedges.values() for phrase in of_kind]
    plain = [each for each in phrases if not set("{^$?.#") & set(each)]
    words = [part.split("|")[0] for each in plain for part in each.split()]
    found = 0
    for _ in range(300):
        parts = chosen.choices(plain, k=2) + chosen.choices(words, k=6)
        chosen.shuffle(parts)
        text = (
            ("" if language.letters else " ").join(parts).replace("|", " ").replace("_", " ").replace("=", "")
        )
        expected = {kind: [match.span() for match in one.finditer(text)] for kind, one in whole.items()}
        spans = language.find_hedges(text)
        assert {kind: spans.get(kind, []) for kind in whole} == expected
        found += sum(map(len, expected.values()))
    assert found > 300


CONFLICTS = """
Der Dienst speichert Namen.|Der Dienst speichert keine Namen.|keine
Gäste müssen sich anmelden.|Gäste sollten sich anmelden.|müssen sollten
Das Passwort braucht mindestens 12 Zeichen.|Das Passwort braucht höchstens 12 Zeichen.|mindestens höchstens
La réunion est mardi.|La réunion est jeudi.|mardi jeudi
Los registros se guardan 90 días.|Los registros se guardan 9 días.|90 9
A fila aceita três pedidos.|A fila aceita 3 pedidos.|
服务接受 TLS 1.0。|服务不接受 TLS 1.0。|不
服务监听 8080 端口。|服务监听 8081 端口。|8080 8081
サービスは氏名を保存する。|サービスは氏名を保存しない。|ない
Der Dienst speichert Namen.|Der Server löscht keine Namen.|
Der Nutzer mag Tee.|Der Nutzer mag Tee und Kaffee.|
The service keeps names.|The service keeps no names.|
"""


def test_contradictions() -> None:
    for line in CONFLICTS.strip().splitlines():
        claimed, earlier, words = line.split("|")
        assert " ".join(contradicted_in_another_language(claimed, earlier)) == words, line


def test_a_character_of_a_script_that_parts_no_words_is_one() -> None:
    assert (
        tokens("服务监听8080端口。") == tokens("服务 监听 8080 端口") == frozenset("服务监听端口") | {"8080"}
    )


def test_a_long_memory_in_chinese_contradicts_another_one() -> None:
    text = "支付服务在每次请求之前都会检查客户端证书的有效期限并把检查结果写入审计日志，保留{}天。"
    found = relation(text.format(90), text.format(9), POLICY.threshold, POLICY.values)
    assert found.relation is Relation.CONFLICT


DATA = [
    "argon",
    "boron",
    "carbon",
    "copper",
    "helium",
    "indium",
    "iron",
    "krypton",
    "lithium",
    "neon",
    "nickel",
]
TEXTS = {
    "data": "".join(f'"{one}-{other}-{one}": "^1.0",\n' for one in DATA for other in DATA[:5]),
    "pt": "**O serviço guarda os nomes em texto simples?** Não.\nO serviço apaga as chaves\na cada hora? Não.",
    "es": '"El servicio guarda los nombres en texto plano?" No. El servicio borra las claves (cada hora?).',
    "de": "Der Dienst speichert keine Namen. Die Sitzung endet nach 30 Minuten. Speichert er Adressen?",
    "zh": "服务不保存用户姓名。会话在30分钟后结束。保存地址？",
    "fi": "Palvelu ei tallenna nimiä. Istunto päättyy, ja se ei ole totta että hän on tai oli siellä.",
}
STANCES = """
de states Der Dienst speichert keine Namen.
de refutes Der Dienst speichert Namen.
de refutes Die Sitzung endet nach 60 Minuten.
de unknown Die Sitzung endet vermutlich nach 30 Minuten.
de silent Die Kundin trinkt den Tee ohne Zucker.
de unknown The service keeps no names.
zh states 会话在30分钟后结束。
zh refutes 服务保存用户姓名。
zh unknown 保存地址。
pt silent O serviço guarda os nomes em texto simples.
pt silent O serviço apaga as chaves.
es silent El servicio guarda los nombres en texto plano.
es silent El servicio borra las claves (cada hora).
data silent The service listens on port 8080.
data speaks The file names helium-iron-helium.
fi unknown Palvelu ei tallenna nimiä.
"""


def held(text: str, source: str) -> tuple[Held, ...]:
    url = given_citation(CitationType.URL, "https://docs.example/")
    there = {"citation": url, "source_id": url.value, "standing": Standing.IN_FORCE, "detail": "It is there."}
    return hold(text, (), Found(**there, text=source)).held or ()


def test_stances() -> None:
    for code, expected, text in rows(STANCES):
        (one,) = held(text, TEXTS[code])
        assert one.stance is Stance(expected), text


def test_words_that_are_everywhere_are_looked_up_so_often_and_no_more() -> None:
    said = "Der Dienst speichert keine Namen von Kunden in Rom. "
    every = held(said * 150, said * 3_800)
    assert (every[0].stance, every[0].why) == (Stance.STATES, "")
    assert (every[-1].stance, every[-1].why) == (Stance.UNKNOWN, "language")


UNREAD = """
cyrillic Кэш устарел, потому что сервер не удаляет записи.
hangul 캐시가 오래되어 서버가 응답하지 않습니다.
italian *Il* *server* *non* *scrive* *i* *nomi* *nel* *registro* *della* *macchina*.
italian Il servizio non scrive i nomi nel registro della macchina.
finnish Palvelu ei tallenna nimiä, ja se on totta tai ei.
"""


def test_what_no_check_can_read_is_for_a_person() -> None:
    for told, text in (line.split(" ", 1) for line in UNREAD.strip().splitlines()):
        (finding,) = judge_language(ReadClaim(claim(text), (), (), (), POLICY))
        assert finding.facts["language"] == told == language_of(text)
        assert "a person has to read it" in finding.message
    for _, _, text in rows(HEDGED):
        assert not list(judge_language(ReadClaim(claim(text), (), (), (), POLICY))), text


HOSTILE = ("ich _ ", "wir _", "je ne sais * ", "nicht ", "ich ...", "„a", "不 ", "か", "ob _*_* ")


def test_hostile_text_costs_no_more_than_its_length() -> None:
    with given_up_after(20):
        for part in HOSTILE:
            DETECTOR.detect("Ich glaube nicht, dass 不 は je ne sais no lo " + part * (8000 // len(part)))
