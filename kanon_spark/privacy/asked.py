"""What a configuration asks of each sensitive column: the models of `privacy`, unless the column has its own."""

from collections.abc import Mapping

from kanon_spark.config.models import PrivacySpec, SensitiveSpec
from kanon_spark.config.privacy_specs import MODEL_KEYS, AlphaSpec, BetaSpec, LDiversitySpec, TClosenessSpec
from kanon_spark.errors import RequestError
from kanon_spark.privacy.alpha import Alpha
from kanon_spark.privacy.base import Model
from kanon_spark.privacy.beta_likeness import BetaLikeness
from kanon_spark.privacy.delta_disclosure import DeltaDisclosure
from kanon_spark.privacy.l_diversity import Distinct, Entropy, Recursive
from kanon_spark.privacy.t_closeness import TCloseness


def models_of(own: SensitiveSpec, privacy: PrivacySpec, codes: Mapping[str, int]) -> tuple[Model, ...]:
    """The models of one sensitive column.

    Args:
        own: What the configuration says of the column.
        privacy: What it says of all of them; a model that the column has itself goes before.
        codes: Code of each value, by its text; only those that `alpha` names are looked up.

    >>> privacy = PrivacySpec(l_diversity=2, t_closeness=0.3)
    >>> [model.words for model in models_of(SensitiveSpec(l_diversity=4), privacy, {})]
    ['distinct l-diversity (l = 4)', 't-closeness (t = 0.3, equal distance)']
    """
    specs = [getattr(own, key) if getattr(own, key) is not None else getattr(privacy, key) for key in MODEL_KEYS]
    return tuple(_model(spec, codes) for spec in specs if spec is not None)


def _model(spec: LDiversitySpec | TClosenessSpec | AlphaSpec | BetaSpec | float, codes: Mapping[str, int]) -> Model:
    match spec:
        case LDiversitySpec():
            return _diversity(spec)
        case TClosenessSpec():
            return TCloseness(spec.t, spec.distance)
        case AlphaSpec():
            if spec.values is None:
                return Alpha(spec.alpha)
            # A named value that nobody carries cannot be carried by too many; but it may be misspelt.
            known = tuple(codes[text] for text in spec.values if text in codes)
            return Alpha(spec.alpha, known, unknown=len(spec.values) - len(known))
        case BetaSpec():
            return BetaLikeness(spec.beta, spec.kind)
        case _:
            return DeltaDisclosure(float(spec))


def _diversity(spec: LDiversitySpec) -> Model:
    if spec.kind == "entropy":
        return Entropy(spec.l)
    if spec.kind == "distinct":
        return Distinct(spec.l)
    if spec.c is None:
        raise RequestError(
            "recursive l-diversity needs c", where="l_diversity", fix="write {l: 3, kind: recursive, c: 2}"
        )
    return Recursive(spec.c, spec.l)
