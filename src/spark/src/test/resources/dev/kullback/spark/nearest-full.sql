SELECT id, row_number() OVER (PARTITION BY id ORDER BY kl, neighbor) AS rank, neighbor, kl
FROM (
  SELECT q.id, p.id AS neighbor, kl_divergence_full(p.mean, p.std, q.mean, q.std) AS kl
  FROM (SELECT `a.key` AS id, `g`.`mean` AS mean, `{L}``` AS std FROM queries) q
  JOIN (SELECT `a.key` AS id, `g`.`mean` AS mean, `{L}``` AS std FROM refs) p
  EXACT NEAREST 3 BY DISTANCE kl_divergence_full(p.mean, p.std, q.mean, q.std))
