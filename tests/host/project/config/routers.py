class ToBoard:
    """All models of this project are in the database `board`."""

    def db_for_read(self, model, **hints):
        return "board"

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        return db == "board"
