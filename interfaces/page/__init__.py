"""The configuration page: a small web page on loopback over `runtime.config.layers`.

`app` is the HTTP interface, `security` decides which requests it sees, `form` is the page's view of
the configuration, `checks` looks at the endpoint and the vault on demand, `server` runs all of it.
The browser's part lies in ``static/`` as plain HTML, CSS and ES modules; nothing is built.
"""
