"""Stage 3: where new replicas go. Brokers, load and wishes in; replica lists out.

Belongs here: the problem, the strategies, a checker and a measure that share no code with them.
Forbidden here: specs, configs and clients. Same input, same answer, whatever its order.
"""
