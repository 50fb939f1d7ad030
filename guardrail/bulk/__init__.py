"""Many rows: files in, files out, by processes of this machine or by Ray, in shards that resume."""
