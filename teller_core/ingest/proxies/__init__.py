"""Access logs of proxies."""
