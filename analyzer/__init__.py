"""Analyzer: turns a trace bundle into tasks, file versions, a graph and patterns (`analyze`)."""
