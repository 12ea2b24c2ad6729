"""Who made and who read a file: the one relation that lint, pictures, rules and diff ask.

Engines are no makers and no readers, and an attempt that a later one replaced made nothing.
The tables of an analysis (tasks, producers, consumers) have to be there under their names.

work     tasks that are not an engine
writers  producers of it, with the `type` and `host` of the task
readers  consumers of it, with the same; peeks are among them (column `peek`)
"""

VIEWS = """
CREATE VIEW work AS SELECT * FROM tasks WHERE NOT coalesce(engine, false);
CREATE VIEW writers AS
  SELECT p.*, t.type, t.host FROM producers p JOIN work t USING (task)
  WHERE NOT coalesce(p.superseded, false);
CREATE VIEW readers AS
  SELECT c.*, t.type, t.host FROM consumers c JOIN work t USING (task);
"""
