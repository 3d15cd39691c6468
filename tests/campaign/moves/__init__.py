"""Moves under traffic: scenarios on real brokers, and kills of apply at random points.

    python -m campaign moves                          (make campaign-moves)
    python -m campaign moves --kills 200 --seed 1     (make campaign-moves KILLS=200)
    python -m campaign moves --kills 200 --drains     (make campaign-moves KILLS=200 DRAINS=1)
    python -m campaign moves --kills 30 --interventions
                                                      (make campaign-moves KILLS=30 INTERVENTIONS=1)

`traffic` writes and reads numbered records throughout; `world` is a cluster with data, an estate,
and what must be true at the end; `scenarios` are single moves and what disturbs them; `kills` ends
apply at random moments until its plan is done, and `interventions` ends what intervenes in it.
"""
