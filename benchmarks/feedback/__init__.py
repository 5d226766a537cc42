"""Search that learns from judgements and clicks, against the cosine."""
