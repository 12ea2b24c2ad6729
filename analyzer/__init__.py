"""From a trace bundle to tasks, file versions, the graph and its patterns (`analyze.analyze`)."""
