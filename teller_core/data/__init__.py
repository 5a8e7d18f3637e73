"""What flows between the rooms, and nothing else: columns, tables, reports."""
