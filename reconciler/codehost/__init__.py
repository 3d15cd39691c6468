"""Reports of a workflow: comments and issues on a code host, and notifications to a webhook.

Belongs here: the comments and issues of GitHub and GitLab, the plan that a merged request approves,
and what a webhook is sent. Forbidden here: Kafka, files but the event a runner hands over, and
the token or the address of a webhook in any text.
"""
