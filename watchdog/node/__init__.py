"""What a node does as one: keep its sentinel, answer other nodes, speak for the silent."""
