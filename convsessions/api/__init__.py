"""The REST API: a thin edge over `convsessions.operations`. HTTP status codes live here and nowhere else."""
