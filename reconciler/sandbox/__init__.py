"""Throwaway clusters: real Kafka brokers on loopback, for tests, demo and rehearsal.

Belongs here: jars, a Java runtime, the engines, and the record of what runs. Forbidden here:
anything that could reach a cluster that this package did not start.
"""
