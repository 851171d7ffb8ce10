"""Relations in words: sentences, prototypes, calibrated names, and whether two words are related at all.

`RelBERT.explain` and `RelBERT.relatedness` use the catalogue that belongs to their model.

>>> from relvec.naming import filled
>>> filled("a X works in or at the Y", ("usher", "theater"))
'an usher works in or at the theater'
"""

from relvec.naming.catalogue import Catalogue, Explanation, NamedRelation
from relvec.naming.sentences import filled

__all__ = ["Catalogue", "Explanation", "NamedRelation", "filled"]
