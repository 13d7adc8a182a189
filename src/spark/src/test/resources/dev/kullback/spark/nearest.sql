SELECT id, row_number() OVER (PARTITION BY id ORDER BY kl, neighbor) AS rank, neighbor, kl
FROM (
  SELECT q.id, p.id AS neighbor, kl_divergence(q.mean, q.std, p.mean, p.std) AS kl
  FROM (SELECT `id` AS id, `mean` AS mean, `std` AS std FROM queries) q
  JOIN (SELECT `id` AS id, `mean` AS mean, `std` AS std FROM refs) p
  EXACT NEAREST 5 BY DISTANCE kl_divergence(q.mean, q.std, p.mean, p.std))
