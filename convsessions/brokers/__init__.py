"""Brokers for django-q2: classes that a host names in ``Q_CLUSTER["broker_class"]``."""
