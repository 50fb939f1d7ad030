"""The golden record: what the whole path of an answer returned, compared request by request."""
