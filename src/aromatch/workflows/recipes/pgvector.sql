-- Search with PostgreSQL and pgvector; written by `aromatch export`.
-- The metric of the model is $metric, the operator $operator sorts the best objects first.
-- Vectors have $n_components dimensions: they are the rows of objects(...) and queries(...) in vectors.py.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE objects (
    id text PRIMARY KEY,
    embedding vector($n_components) NOT NULL
);

-- From Python, with psycopg and pgvector.psycopg.register_vector(connection):
--     with connection.cursor().copy("COPY objects (id, embedding) FROM STDIN WITH (FORMAT BINARY)") as copy:
--         copy.set_types(["text", "vector"])
--         for one, vector in zip(ids, objects(items)):
--             copy.write_row([one, vector])

-- For many objects; $index_note
CREATE INDEX ON objects USING hnsw (embedding $operators);

-- :query is a row of queries(...).
SELECT id, $score AS score FROM objects ORDER BY embedding $operator :query LIMIT 10;
