"""What a cluster has, for people who ask: its topics, brokers, partitions and configs as rows.

A state and an estate go in; rows come out. Here belongs what decides which rows there are and what
they say. Forbidden are clients, files, the clock, and the layout of text: `show` has that.
"""
