"""Where evidence comes from beside a graph: rows of tables, results of queries, documents."""
