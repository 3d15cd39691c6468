"""The Python interface: what the command line does, in five calls. The command line uses it, too.

    estate = load_estate("topics")
    state = read_cluster(estate, "prod-eu")
    plan = build_plan(estate, "prod-eu", state)
    print(render_plan(plan))
    apply_plan(plan, estate)

In addition, `read_snapshot` reads a state from a file, and `take_snapshot` reads an entire cluster
for such a file. `read_moves` and `watch_moves` report moves in flight, and
`control_moves` slows, cancels and settles them. Errors are ReconcilerErrors
with a text for people; nothing prints. Calls import only the stages that they need, so that a start
is fast.
"""
