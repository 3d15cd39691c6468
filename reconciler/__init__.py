"""Kafka topics as code: plan in the pull request, apply on merge, balanced by design."""
