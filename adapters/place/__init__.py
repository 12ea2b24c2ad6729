"""Start a task on the node that holds its inputs (`tracehint place`)."""
