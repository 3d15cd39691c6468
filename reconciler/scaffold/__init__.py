"""What a repository of specs needs besides specs: its files as texts, and the tasks that remain.

Values only: `api.scaffolding` reads and writes files and clusters, `codehost.setup` asks the host.
`files/` links to the workflows, the actions and the script of this project, so a repository gets
what runs here. Forbidden: anything that depends on one code host or file system.
"""
