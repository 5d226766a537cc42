-- Search with PostgreSQL and pgvector; written by `aromatch export`.
-- Vectors have $rank numbers: those of objects(...) and queries(...) in vectors.py.
-- <#> is minus the inner product, so that the smallest comes first.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE objects (
    id text PRIMARY KEY,
    embedding vector($rank) NOT NULL
);

-- From Python, with psycopg and pgvector.psycopg.register_vector(connection):
--     with connection.cursor().copy("COPY objects (id, embedding) FROM STDIN WITH (FORMAT BINARY)") as copy:
--         copy.set_types(["text", "vector"])
--         for one, vector in zip(ids, objects(items)):
--             copy.write_row([one, vector])

-- For many objects; $index_note
CREATE INDEX ON objects USING hnsw (embedding vector_ip_ops);

-- :query is a row of queries(...).
SELECT id, -(embedding <#> :query) AS score FROM objects ORDER BY embedding <#> :query LIMIT 10;
