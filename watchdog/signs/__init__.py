"""Predicates that rules share: signs of weights, peers, engines, deaths and networks."""
