"""The OpenAPI 3 document of the REST API, by drf-spectacular.

Nothing outside imports this package unless drf-spectacular is among the INSTALLED_APPS: the API works without it.
`shapes` are the bodies, `parameters` the headers and queries, `operations` the table of what each method of each URL
takes and answers, `schema` what hands all that to drf-spectacular.
"""
