"""Words that look like a hedge and are none, and hedges as they are written: Portuguese, Chinese and Japanese."""

from __future__ import annotations

from vouchgate.ingest.checks.hedge import HedgeDetector, judge
from vouchgate.ingest.contradictions.glossed import GlossKind, glossed
from vouchgate.ingest.hedges.lexicon import load_lexicon
from vouchgate.ingest.language.languages import load_languages

HEDGED = """
personal_speculation Talvez o erro venha do proxy.
personal_speculation O proxy provavelmente perdeu a rota.
technical_hedge O proxy provavelmente vai perder a rota.
technical_hedge A fila pode não esvaziar.
no_hedge A senha pode ter no máximo 64 letras.
no_hedge O separador não pode conter espaços.
admitted_uncertainty Nao temos certeza de quem aprovou.
no_hedge Se não tiver certeza, peça ajuda no canal.
undecided_suggestion Que tal guardar o cache no disco?
no_hedge A ideia de usar o disco foi recusada.
approximation Sobraram umas 30 vagas.
no_hedge Todas as vezes o teste passa.
personal_speculation 我覺得是連線池的問題。
personal_speculation 截止日期應該是週五吧。
technical_hedge 連線池可能會耗盡。
no_hedge 可能性矩陣在文件裡。
no_hedge 所有可能的值都在枚举里。
approximation 磁盘用了约９０％。
no_hedge 预约 3 个会议室需要审批。
approximation 附近约 3 家店。
no_hedge 最近 3 天没有报错。
no_hedge 我想买一台新电脑。
personal_speculation 我想他已经离职了。
undecided_suggestion 要不要把日志移到 S3？
no_hedge 把日志移到 S3 的建议已被采纳。
admitted_uncertainty 还不清楚是谁改的配置。
no_hedge 如果不确定，请询问管理员。
personal_speculation ﾃﾞｰﾀﾍﾞｰｽが原因だと思う。
personal_speculation 原因はロックだろう。
technical_hedge 負荷が上がるとキューが詰まることがある。
no_hedge 東京に住んだことがある。
technical_hedge 更新は失敗しやすい。
no_hedge この画面は使いやすい。
approximation 応答は８０ミリ秒くらいです。
no_hedge 契約は3件あります。
no_hedge 先ほどのエラーは解決した。
admitted_uncertainty 誰が消したのか分かっていない。
no_hedge 不明なオプションは無視される。
personal_speculation O cache está "provavelmente" com erro de valor.
no_hedge A Ana respondeu: "não sei".
no_hedge O botão "Talvez mais tarde" fecha a janela.
technical_hedge 缓存“可能”是旧的。
no_hedge “我觉得没问题”，老周说。
personal_speculation キャッシュは「たぶん」古い値だ。
no_hedge 部長は「たぶん大丈夫」と言った。
undecided_suggestion Redisに変えてみませんか？
no_hedge 検討した結果、Redisに決めた。
"""

# Kinds of small words, as they are written: what denies, what may or must be, how many.
SMALL = {
    "pt": "Ninguém pode apagar todos os registros no disco.|ninguém|pode|todos os",
    "zh": "所有用户都不必须修改密码，不仅是管理员。|不|必须|所有",
    "ja": "すべてのノードはUTCを使わなければならないが、再起動は必要ではない。|ではない|なければならない 必要|すべての",
}


def test_hedges() -> None:
    detector = HedgeDetector(load_lexicon())
    wrong = []
    for line in HEDGED.strip().splitlines():
        expected, text = line.split(" ", 1)
        if (found := judge(detector.detect(text))).code != expected:
            wrong.append((text, expected, found.code, found.facts.get("words")))
    assert wrong == []


def test_small_words_are_told_from_longer_words_that_hold_them() -> None:
    for code, row in SMALL.items():
        text, *expected = row.split("|")
        words = glossed(text, load_languages()[code])
        kinds = (GlossKind.NEGATION, GlossKind.MODALITY, GlossKind.QUANTIFIER)
        assert [" ".join(word.shown for word in words if word.kind is kind) for kind in kinds] == expected
