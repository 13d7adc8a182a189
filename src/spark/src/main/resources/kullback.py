"""Nearest Gaussians by Kullback-Leibler divergence, for PySpark and Spark Connect.

The session needs the SQL extension dev.kullback.spark.KullbackExtensions; all that is done here is a query in SQL. See spark.md.
"""

__all__ = ["nearest"]

_QUERY = """\
SELECT id, row_number() OVER (PARTITION BY id ORDER BY kl, neighbor) AS rank, neighbor, kl
FROM (
  SELECT q.id, p.id AS neighbor, {distance} AS kl
  FROM (SELECT {queries_columns} FROM {{queries}}) q
  JOIN (SELECT {references_columns} FROM {{references}}) p
  EXACT NEAREST {k} BY DISTANCE {distance})"""


def nearest(queries, references, k, *, id="id", mean="mean", std="std", scale_tril=None, reverse=False):
    """Returns the k references p with the smallest KL(q || p), in nats, of each query q.

    The result is a DataFrame with the columns id, rank from 1 to k, neighbor and kl: a query's id, the reference's id, and the
    divergence. It is computed when it is used. Both inputs are DataFrames of one session with columns of the same names; a field
    of a struct is "g.mean". Rows whose arrays are null are near to nothing.

    k           number of neighbors, at least 1; fewer are found where there are fewer references
    id          column of ids, of any type that has an order; no two queries have the same
    mean        column of means, arrays of D numbers or vectors of Spark ML
    std         column of standard deviations, likewise
    scale_tril  column of lower factors of full covariances in place of std, arrays of D*D numbers row by row, or of rows; matrices of
                Spark ML in it are the covariances themselves: scale_tril="cov" of GaussianMixtureModel.gaussiansDF
    reverse     whether by KL(p || q) instead
    """
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"k must be an int, is {k!r}")
    if k < 1:
        raise ValueError(f"k must be at least 1, is {k}")
    names = {"id": id, "mean": mean, "std": std if scale_tril is None else scale_tril}
    function = "kl_divergence" if scale_tril is None else "kl_divergence_full"
    sides = ("p", "q") if reverse else ("q", "p")
    text = _QUERY.format(
        distance="{}({}.mean, {}.std, {}.mean, {}.std)".format(function, sides[0], *sides, sides[1]),
        queries_columns=_columns("queries", queries, names),
        references_columns=_columns("references", references, names),
        k=k,
    )
    session = queries.sparkSession
    if not session.catalog.functionExists(function):
        raise RuntimeError(
            f"the session has no function {function}: start it with"
            " spark.sql.extensions=dev.kullback.spark.KullbackExtensions and the jar of Kullback"
        )
    return session.sql(text, queries=queries, references=references)


def _columns(side, data, names):
    if not hasattr(data, "sparkSession"):
        raise TypeError(f"{side} must be a DataFrame, is {type(data).__name__}")
    return ", ".join(f"{_column(side, data.columns, name, role)} AS {role}" for role, name in names.items())


def _column(side, columns, name, role):
    """Quotes the name of a column, or else that of a field within one, for a text that is formatted once more."""
    if not isinstance(name, str):
        raise TypeError(f"{role} must be a column's name, is {name!r}")
    known = {column.lower() for column in columns}
    parts = [name] if name.lower() in known else name.split(".")
    if parts[0].lower() not in known or "" in parts:
        raise ValueError(f"{side}: no column {name}; there are {', '.join(columns)}")
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    return quoted.replace("{", "{{").replace("}", "}}")
