"""BioKaLMA: build its questions from any graph, run models on them, score the answers."""
