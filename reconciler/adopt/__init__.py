"""Specs for existing topics: of a live cluster, or in files of other tools.

Belongs here: choosing files, defaults and profiles as a person would, writing a live topic in as
few lines as possible, amending documents of people without a change to the rest, and the usual form
of documents. Forbidden here: contact with a cluster, and reading or writing any file: estates come
and go as texts.
"""
