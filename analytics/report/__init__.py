"""The weekly report: `build` makes one WeeklyReport value of a database, `render` writes it three ways."""
