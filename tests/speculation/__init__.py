"""The mathematics of speculative decoding: sampling, replay, rounds, policies, closed forms."""
