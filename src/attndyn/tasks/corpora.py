"""The corpora attndyn knows: what they are, whose they are, and what the papers did to them. Data only, no numpy here.

The files of a corpus, with their SHA-256 and number of records, stand in data/checksums.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from attndyn.errors import UserError, nearest

PACKAGED = Path(__file__).parent / "data"

Kind = Literal["labelled", "parallel", "chunking", "alignment", "vectors"]
NEEDED: dict[Kind, str] = {
    "labelled": "labelled text is", "parallel": "parallel text is", "chunking": "sentences with chunk tags are",
}  # fmt: skip


class Record(NamedTuple):
    """What is known of a file."""

    sha256: str
    rows: int
    """Lines; of a chunking file, sentences."""


@dataclass(frozen=True, kw_only=True)
class Hub:
    """Where `attndyn data fetch` finds a corpus on the Hugging Face Hub, and how its columns map to our files."""

    name: str
    config: str | None = None
    revision: str | None = None
    splits: tuple[tuple[str, str], ...] = (("train", "train"), ("test", "test"))
    """Ours and theirs."""
    columns: tuple[tuple[str, str], ...] = (("label", "label"), ("text", "text"))
    """Ours and theirs; a dot leads into a nested column."""
    labels: tuple[tuple[str, str], ...] = ()
    """Theirs and ours; rows with another label are left out."""
    rows: tuple[tuple[str, int], ...] = ()
    """How many rows each split must give, where that is known."""
    draw: int | None = None
    """Take this many rows of each split, drawn by seed."""
    held_out: int | None = None
    """The source has no split: as many pairs are drawn for valid, and as many for test."""
    valid_share: float | None = None
    """The source has no split: this share of the pairs is drawn for valid, and there is no test part."""
    without_numbers: bool = False
    """Pairs without a letter on either side are left out."""
    tokenised: bool = False
    caveat: str = ""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    name: str
    """Also the name of its folder."""
    title: str
    kind: Kind
    licence: str
    attribution: str
    caveat: str = ""
    hub: Hub | None = None
    tokenised: bool = False
    """The text is tokenised: it is cut at white space and left as it is."""
    classes: tuple[tuple[str, str], ...] = ()
    """The labels of the file and the class of each; none: the labels are the classes."""
    dropped: tuple[str, ...] = ()
    """Labels whose examples are left out."""
    below: int | None = None
    """Only texts of fewer words."""
    integers_unknown: bool = False
    """Integers of two digits or more are <unk> (Snell et al. A.8)."""
    split_underscores: bool = False
    """An underscore ends a word (Snell et al. A.8)."""
    published_epochs: int | None = None
    """For how many epochs the authors of the papers trained on it, where it is not the usual number."""
    translator_steps: int | None = None
    """For how many steps a translator is trained on it, where no paper did: as many as on Multi30k."""
    apart: bool = False
    """The text is not that of the papers, as the caveat says: no size or score is compared with a published one."""
    published_vocabulary: int | None = None
    published_train: int | None = None
    published_median: int | None = None

    @property
    def files(self) -> dict[str, Record]:
        """Empty for a corpus that can only be fetched."""
        return checksums().get(self.name, {})

    @property
    def ships(self) -> bool:
        return (PACKAGED / self.name).is_dir()


@cache
def checksums() -> dict[str, dict[str, Record]]:
    """Corpus → file → what is known of it."""
    found: dict[str, dict[str, Record]] = {}
    for line in (PACKAGED / "checksums.txt").read_text(encoding="utf-8").splitlines():
        sha256, rows, path = line.split()
        folder, _, name = path.partition("/")
        found.setdefault(folder, {})[name] = Record(sha256, int(rows))
    return found


POLARITY = (("0", "neg"), ("1", "pos"))
STARS = tuple((str(star - 1), str(star)) for star in range(1, 6))
TATOEBA = "CC BY 2.0"
TATOEBA_BY = "Tatoeba project (tatoeba.org), pairs selected by manythings.org/anki"
MULTI30K_STEPS = 36_260
STAND_IN = "stands in for IWSLT'14 and News Commentary, not comparable with the published corpora: direction only"


def _tatoeba(code: str, language: str) -> Corpus:
    return Corpus(
        name=f"tatoeba_{code}_en",
        title=f"Tatoeba {language}-English: short everyday sentences",
        kind="parallel",
        licence=TATOEBA,
        attribution=TATOEBA_BY,
        caveat=STAND_IN,
        translator_steps=MULTI30K_STEPS,
        hub=Hub(
            name="sentence-transformers/parallel-sentences-tatoeba",
            config=f"en-{code}",
            splits=(("train", "train"),),
            columns=((code, "non_english"), ("en", "english")),
            held_out=1000,
            caveat=f"{STAND_IN}; a later export than the one whose checksums are known, with a split of its own",
        ),
    )


def _news(source: str, target: str, languages: str, epochs: int) -> Corpus:
    return Corpus(
        name=f"news_{source}_{target}",
        title=f"News Commentary {languages}",
        kind="parallel",
        licence="none stated",
        attribution="Tiedemann 2012, OPUS; texts of Project Syndicate",
        caveat="version 11, where the paper has the larger version 14; 10 % drawn as valid, no test part",
        hub=Hub(
            name="Helsinki-NLP/news_commentary",
            config=f"{source}-{target}",
            splits=(("train", "train"),),
            columns=((source, f"translation.{source}"), (target, f"translation.{target}")),
            valid_share=0.1,
            without_numbers=True,
            caveat="version 11, where the paper has the larger version 14; 10 % drawn as valid, no test part",
        ),
        published_epochs=epochs,
    )


CORPORA: dict[str, Corpus] = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            name="imdb",
            title="IMDB film reviews, negative or positive",
            kind="labelled",
            licence="none stated",
            attribution="Maas et al. 2011, Learning Word Vectors for Sentiment Analysis",
            caveat="24,800 and 8,000 of the 25,000 and 25,000 reviews: duplicates removed, the test part drawn",
            hub=Hub(name="stanfordnlp/imdb", labels=POLARITY, rows=(("train", 25_000), ("test", 25_000))),
            published_vocabulary=60_338,
            published_train=25_000,
        ),
        Corpus(
            name="sst5",
            title="Stanford Sentiment Treebank sentences, negative (0, 1) or positive (3, 4)",
            kind="labelled",
            licence="none stated",
            attribution="Socher et al. 2013, Recursive Deep Models for Semantic Compositionality",
            caveat="the neutral sentences (label 2) are left out; two sentences occur in both train and test",
            hub=Hub(
                name="SetFit/sst5",
                splits=(("train", "train"), ("valid", "validation"), ("test", "test")),
                labels=tuple((str(n), str(n)) for n in range(5)),
                rows=(("train", 8_544), ("valid", 1_101), ("test", 2_210)),
                tokenised=True,
            ),
            tokenised=True,
            classes=(("0", "neg"), ("1", "neg"), ("3", "pos"), ("4", "pos")),
            dropped=("2",),
            published_vocabulary=11_022,
        ),
        Corpus(
            name="ag_news_wb",
            title="AG News, world or business",
            kind="labelled",
            licence="research and other non-commercial use",
            attribution="Zhang, Zhao and LeCun 2015, Character-level ConvNets; news collected by A. Gulli",
            caveat="14,644 of 60,000 training articles: not comparable with the published corpus",
            apart=True,
            hub=Hub(
                name="fancyzhx/ag_news",
                labels=(("0", "world"), ("2", "business")),
                rows=(("train", 60_000), ("test", 3_800)),
                caveat="title and description, where the files with known checksums have the description only",
            ),
            integers_unknown=True,
            published_vocabulary=31_065,
            published_train=60_000,
        ),
        Corpus(
            name="newsgroups_sport",
            title="20 Newsgroups, baseball or hockey",
            kind="labelled",
            licence="none stated",
            attribution="Lang 1995, NewsWeeder; 20 Newsgroups, by-date version",
            caveat="without headers, quoted lines and signatures",
            apart=True,
            hub=Hub(
                name="SetFit/20_newsgroups",
                columns=(("label", "label_text"), ("text", "text")),
                labels=(("rec.sport.baseball", "baseball"), ("rec.sport.hockey", "hockey")),
            ),
            integers_unknown=True,
            split_underscores=True,
            published_vocabulary=12_488,
        ),
        Corpus(
            name="amazon_reviews",
            title="Amazon product reviews of 14 domains, negative or positive",
            kind="labelled",
            licence="none stated by the original",
            attribution="Blitzer, Dredze and Pereira 2007; Liu, Qiu and Huang 2017",
            caveat="18,454 reviews, where the paper had about 40,000 of the same collection",
            apart=True,
            tokenised=True,
            below=400,
            published_vocabulary=37_110,
        ),
        Corpus(
            name="amazon_polarity",
            title="Amazon product reviews, negative or positive",
            kind="labelled",
            licence="Apache-2.0 (as stated on the Hub)",
            attribution="McAuley and Leskovec 2013; Zhang, Zhao and LeCun 2015",
            caveat="another collection than the published one; 40,000 of 3,600,000 reviews, drawn by seed",
            apart=True,
            hub=Hub(
                name="fancyzhx/amazon_polarity",
                columns=(("label", "label"), ("text", "content")),
                labels=POLARITY,
                draw=40_000,
            ),
            below=400,
        ),
        Corpus(
            name="yelp_sentences",
            title="sentences of Yelp reviews, negative or positive",
            kind="labelled",
            licence="Yelp dataset terms",
            attribution="Shen et al. 2017, Style Transfer from Non-Parallel Text by Cross-Alignment; Yelp",
            caveat="single sentences, not reviews: not comparable with the published corpus",
            apart=True,
            tokenised=True,
            published_vocabulary=41_368,
            published_train=20_000,
        ),
        Corpus(
            name="yelp_reviews",
            title="Yelp reviews, at most 2 or at least 4 stars",
            kind="labelled",
            licence="Yelp dataset terms",
            attribution="Zhang, Zhao and LeCun 2015; Yelp",
            caveat="25,000 of 650,000 reviews, drawn by seed; those of 3 stars are left out",
            apart=True,
            hub=Hub(name="Yelp/yelp_review_full", labels=STARS, draw=25_000),
            classes=(("1", "neg"), ("2", "neg"), ("4", "pos"), ("5", "pos")),
            dropped=("3",),
            published_vocabulary=41_368,
            published_train=20_000,
        ),
        Corpus(
            name="sms_spam",
            title="SMS Spam Collection, ham or spam",
            kind="labelled",
            licence="CC BY 4.0",
            attribution="Almeida and Gómez Hidalgo, SMS Spam Collection, UCI Machine Learning Repository",
            caveat="the collection has no split: 20 % of each class were drawn as test",
            published_vocabulary=4_691,
            published_train=3_500,
            published_median=13,
        ),
        Corpus(
            name="multi30k",
            title="Multi30k image captions in English, German, French and Czech",
            kind="parallel",
            licence="non-commercial research or educational use (of the images; nothing separate for the text)",
            attribution="Elliott et al. 2016 and 2017; Barrault et al. 2018",
            caveat="the test part is test_2017_flickr",
            hub=Hub(
                name="bentrevett/multi30k",
                splits=(("train", "train"), ("valid", "validation"), ("test_2016_flickr", "test")),
                columns=(("de", "de"), ("en", "en")),
                rows=(("train", 29_000), ("valid", 1_014), ("test_2016_flickr", 1_000)),
                caveat="German and English only; the test part is test_2016_flickr",
            ),
        ),
        Corpus(
            name="iwslt14_de_en",
            title="IWSLT'14 German-English: TED talks",
            kind="parallel",
            licence="CC BY-NC-ND 4.0",
            attribution="Cettolo et al. 2014, Report on the 11th IWSLT Evaluation Campaign",
            hub=Hub(
                name="bbaaaa/iwslt14-de-en-preprocess",
                config="de-en",
                revision="refs/convert/parquet",
                splits=(("train", "train"), ("valid", "validation"), ("test", "test")),
                columns=(("de", "translation.de"), ("en", "translation.en")),
                rows=(("train", 160_239), ("valid", 7_283), ("test", 6_750)),
                tokenised=True,
            ),
            tokenised=True,
            published_epochs=30,
        ),
        _news("en", "nl", "English-Dutch", epochs=40),
        _news("en", "pt", "English-Portuguese", epochs=30),
        _news("it", "pt", "Italian-Portuguese", epochs=40),
        _tatoeba("de", "German"),
        Corpus(
            name="tatoeba_de_en_small",
            title="6,000 pairs of Tatoeba German-English, which ship with attndyn",
            kind="parallel",
            licence=TATOEBA,
            attribution=TATOEBA_BY,
            caveat="5,000, 500 and 500 pairs drawn by seed from tatoeba_de_en (docs/data/tatoeba_small.py)",
        ),
        _tatoeba("es", "Spanish"),
        _tatoeba("nl", "Dutch"),
        Corpus(
            name="europarl_de_en",
            title="Europarl German-English: speeches in the European Parliament",
            kind="parallel",
            licence="none stated",
            attribution="Koehn 2005, Europarl; tokenised and aligned as the ComTrans corpus of NLTK",
            caveat="21,079 pairs; *.auto_align holds automatic links, a weak reference only",
            hub=Hub(
                name="Helsinki-NLP/europarl",
                config="de-en",
                splits=(("train", "train"),),
                columns=(("de", "translation.de"), ("en", "translation.en")),
                draw=23_000,
                held_out=1000,
                caveat="other sentences than those whose checksums are known: 23,000 drawn by seed, not tokenised",
            ),
            tokenised=True,
        ),
        Corpus(
            name="align_gold",
            title="gold word alignments: Europarl de-en (two sets) and Hansards en-fr",
            kind="alignment",
            licence="none stated; Biçici asks to be cited",
            attribution="Carnegie Mellon 11-731; Biçici 2011; Och and Ney 2000, Mihalcea and Pedersen 2003",
            caveat="links and text of europarl_de_en were joined again from two sources",
            tokenised=True,
        ),
        Corpus(
            name="conll2000",
            title="CoNLL-2000 chunking (Wall Street Journal)",
            kind="chunking",
            licence="none stated",
            attribution="Tjong Kim Sang and Buchholz 2000, Introduction to the CoNLL-2000 Shared Task",
            hub=Hub(
                name="eriktks/conll2000",
                revision="refs/convert/parquet",
                columns=(("word", "tokens"), ("pos", "pos_tags"), ("chunk", "chunk_tags")),
            ),
        ),
        Corpus(
            name="glove",
            title="GloVe word vectors: 30,000 words, 100 dimensions",
            kind="vectors",
            licence="PDDL 1.0",
            attribution="Pennington, Socher and Manning 2014, GloVe",
            caveat="a part of glove.6B.100d, rounded to two decimals, without one-letter words, numbers and clitics",
        ),
    )
}


SHORT = {
    "sms": "sms_spam",
    "sst": "sst5",
    "ag": "ag_news_wb",
    "20ng": "newsgroups_sport",
    "amazon": "amazon_reviews",
    "yelp": "yelp_sentences",
    "tatoeba-sample": "tatoeba_de_en_small",
}
"""What people call them."""
MADE_HERE = ("made", "tatoeba-cipher", "sst2")
"""Corpora that are no folder: made when they are read, or another reading of one."""


def named(kind: Kind) -> list[str]:
    """What corpora of a kind may be called."""
    return [name for name in (*CORPORA, *SHORT) if find(name).kind == kind]


def find(name: str) -> Corpus:
    name = SHORT.get(name, name)
    if name not in CORPORA:
        raise UserError(f"there is no corpus {name!r}; {nearest(name, CORPORA)}")
    return CORPORA[name]
