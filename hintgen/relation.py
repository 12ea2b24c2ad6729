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

# One row per file: types of its writers and readers (typesets.py; made and used: the numbers of
# these texts), their counts and times (`counts_by_file` of users.py).
FILE_TYPES = """
CREATE TABLE file_types AS
  SELECT f.file, m.text AS producers, u.text AS consumers, m.told AS made, u.told AS used,
         p.tasks AS n_producers, p.last_s AS written_s, c.tasks AS n_consumers,
         c.whole AS n_readers, c.last_s AS last_read_s
  FROM files f LEFT JOIN type_set s USING (file) LEFT JOIN type_words m ON m.number = s.made
       LEFT JOIN type_words u ON u.number = s.used
       LEFT JOIN file_makers p USING (file) LEFT JOIN file_readers c USING (file);
"""
