"""Evidence from tables, query results and documents."""
