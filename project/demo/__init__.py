"""What ``manage.py demo`` does: a real worker, a real failure in the middle, and a look at what became of it."""
