"""Bradley-Terry by logistic regression: the weights whose differences of scores best explain which answer won."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bradley_terry(differences: Any, weight: npt.ArrayLike, *, inverse_regularisation: float) -> Floats:
    """The weights of shape (feature,) for differences of shape (pair, feature), better minus worse, dense or sparse.

    The loss is sum(weight * log(1 + exp(-difference @ w))) * ``inverse_regularisation`` + |w|^2 / 2, with no intercept.
    """
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    # Without an intercept the loss of (x, 1) equals that of (-x, 0), so each pair is given once, all with label 1.
    # The library wants two labels: an empty row with label 0 adds a constant and no gradient.
    empty = differences[:1] * 0
    is_sparse = sparse.issparse(differences)
    rows = sparse.vstack([differences, empty], format="csr") if is_sparse else np.concatenate([differences, empty])
    labels = np.append(np.ones(differences.shape[0]), 0.0)
    model = LogisticRegression(C=inverse_regularisation, fit_intercept=False, solver="lbfgs", max_iter=5000, tol=1e-6)
    model.fit(rows, labels, sample_weight=np.append(weight, 1.0))
    return model.coef_[0]
